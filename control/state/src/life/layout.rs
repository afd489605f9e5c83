//! The layout that is built in: boots by BIOS and by UEFI from the first disk.

use proto_errors::Error;

use crate::entities::{
    Disk, DiskPartition, Filesystem, Format, GptType, LAYOUT_DEFAULT, Layout, LayoutConstraints,
};
use crate::meta::Meta;

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
