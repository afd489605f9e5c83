//! The built-in layout, and the one that fits a size and an image.

use proto_errors::Error;
use proto_types::{ImageId, LayoutId, SizeId};

use crate::catalog::entity::{
    Disk, DiskPartition, Filesystem, Format, GptType, Image, LAYOUT_DEFAULT, Layout,
    LayoutConstraints, Size,
};
use crate::catalog::read::{Requirement, parse_image_id};
use crate::meta::Meta;
use crate::tables::Tables;

/// MiB of the EFI system partition.
const ESP_MIB: u64 = 256;

/// The built-in layout: BIOS boot partition, EFI system partition, and the rest as root.
pub fn default_layout() -> Result<Layout, Error> {
    let partition = |number, label: &str, size_mib, gpt_type| DiskPartition {
        number,
        label: Some(label.into()),
        size_mib,
        gpt_type: Some(gpt_type),
    };
    let filesystem = |number: u32, path: &str, format, label: &str| Filesystem {
        device: format!("@first:{number}"),
        format,
        name: None,
        description: None,
        path: Some(path.into()),
        label: Some(label.into()),
        mount_options: Vec::new(),
        create_options: Vec::new(),
    };
    let id = LAYOUT_DEFAULT.parse();
    Ok(Layout {
        id: id.map_err(|e: proto_types::ParseError| Error::invalid("id", e))?,
        meta: Meta::default(),
        name: Some("built in".into()),
        description: Some("first disk: BIOS and UEFI boot, the rest as root".into()),
        filesystems: vec![
            filesystem(2, "/boot/efi", Format::Vfat, "efi"),
            filesystem(3, "/", Format::Ext4, "root"),
        ],
        disks: vec![Disk {
            device: "@first".into(),
            partitions: vec![
                partition(1, "bios", 1, GptType::BiosGrub),
                partition(2, "efi", ESP_MIB, GptType::Boot),
                partition(3, "root", 0, GptType::Linux),
            ],
        }],
        raids: Vec::new(),
        volume_groups: Vec::new(),
        logical_volumes: Vec::new(),
        constraints: LayoutConstraints::default(),
    })
}

/// The first layout by id whose constraints match (`FilesystemService.Match`).
///
/// # Errors
/// `InvalidField` if there is none: disks are not divided by a guess.
pub(crate) fn layout_for(tables: &Tables, size: &SizeId, image: &Image) -> Result<LayoutId, Error> {
    let (os, version) = parse_image_id(image.id.as_str())?;
    let matching = tables.all::<Layout>().find(|layout| {
        let constraints = &layout.constraints;
        let requirement = constraints
            .images
            .get(os)
            .map(|text| Requirement::parse(text));
        constraints.sizes.contains(size)
            && requirement.is_some_and(|r| r.is_ok_and(|r| r.matches(version)))
    });
    matching.map(|layout| layout.id.clone()).ok_or_else(|| {
        let rule = format!(
            "must be given: no layout is for size \"{size}\" and image \"{}\"",
            image.id
        );
        let hint = "name one, \"default\" for the built-in one: metalmesh filesystem ls";
        Error::invalid("filesystem_layout", rule).hint(hint)
    })
}

/// The layout that an allocation of this size and image would get: `FilesystemService.Match`.
pub fn match_layout(tables: &Tables, size: &SizeId, image: &ImageId) -> Result<LayoutId, Error> {
    let image = tables.require::<Image>(image)?;
    tables.require::<Size>(size)?;
    layout_for(tables, size, image)
}

/// The layout of this id; the built-in one has an id as well.
pub fn layout(tables: &Tables, id: &LayoutId) -> Result<Layout, Error> {
    if id.as_str() == LAYOUT_DEFAULT {
        return default_layout();
    }
    tables
        .require::<Layout>(id)
        .map(|layout| Layout::clone(layout))
}
