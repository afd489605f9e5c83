//! Plans a filesystem layout on the machine's disks: commands for partitions, arrays, volumes and
//! file systems. Pure functions; every refusal comes before the first byte is written.

mod check;
mod error;
mod names;
mod volumes;

use std::collections::BTreeSet;

use proto_mesh::{Filesystem, Layout};

use super::selector;
use crate::cmd::Cmd;
use crate::inventory::Disk;
pub use error::LayoutError;
use names::Names;

const MIB: u64 = 1 << 20;
/// MiB of a disk that partitions cannot use: GPT, its backup, and the alignment of the first and
/// the last partition.
const GPT_OVERHEAD_MIB: u64 = 3;
/// sgdisk's code of the BIOS boot partition, where GRUB's core image goes.
const TYPE_BIOS_BOOT: &str = "ef02";

/// A file system to make and mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fs {
    /// Path of the device; "tmpfs" for tmpfs.
    pub device: String,
    /// Mount point. Empty for swap, and for file systems that are not mounted.
    pub path: String,
    /// "ext4", "ext3", "vfat", "swap", "tmpfs"; "none" or empty for a raw device.
    pub format: String,
    /// UUID as `blkid` prints it. Empty for tmpfs and raw devices.
    pub uuid: String,
    /// Options for fstab.
    pub mount_options: Vec<String>,
}

/// The changes to the disks, and the properties of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Stages in order. After each one its devices must appear before the next may run.
    pub stages: Vec<Stage>,
    /// File systems, parents before children, those without a path last.
    pub filesystems: Vec<Fs>,
    /// Paths of the disks of the layout, which are cleaned after a failure.
    pub disks: Vec<String>,
    /// Paths of the disks that get a BIOS boot loader.
    pub bios_disks: Vec<String>,
    /// Path of the disk with the root file system. The first disk of the layout if the file system
    /// is on an array or a volume.
    pub primary_disk: String,
}

/// Commands, and the devices that they make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    /// Commands in order.
    pub commands: Vec<Cmd>,
    /// Paths of the devices that exist after the commands.
    pub creates: Vec<String>,
}

/// Plans a layout on the disks of this machine. `uuid` returns random UUIDs.
///
/// # Errors
/// When the layout does not fit the machine or contradicts itself.
pub fn plan(
    layout: &Layout,
    disks: &[Disk],
    uefi: bool,
    mut uuid: impl FnMut() -> uuid::Uuid,
) -> Result<Plan, LayoutError> {
    let mut names = Names::default();
    let mut stages = Vec::new();
    let mut chosen: Vec<(String, Disk)> = Vec::new();
    let mut bios_disks = Vec::new();
    for wanted in &layout.disks {
        let disk = selector::resolve(&wanted.device, disks)?;
        if let Some((other, _)) = chosen.iter().find(|(_, d)| d.name == disk.name) {
            return Err(LayoutError::SameDisk(other.clone(), wanted.device.clone()));
        }
        stages.push(partition(wanted, disk, &mut names)?);
        if wanted
            .partitions
            .iter()
            .any(|p| p.gpt_type.eq_ignore_ascii_case(TYPE_BIOS_BOOT))
        {
            bios_disks.push(disk.path());
        }
        chosen.push((wanted.device.clone(), disk.clone()));
    }
    // From bottom to top: each layer is made on devices that the layers before it have named.
    for raid in &layout.raids {
        stages.push(volumes::array(raid, &mut names)?);
    }
    volumes::check_group_names(layout)?;
    for group in &layout.volume_groups {
        stages.push(volumes::volume_group(group, &mut names)?);
    }
    for (at, volume) in layout.logical_volumes.iter().enumerate() {
        stages.push(volumes::logical_volume(layout, at, volume, &mut names)?);
    }
    let (filesystems, make) = filesystems(layout, &mut names, &mut uuid)?;
    stages.push(make);
    check_bootable(&filesystems, &bios_disks, uefi)?;
    let primary_disk = primary_disk(&filesystems, &chosen);
    let disks = chosen.iter().map(|(_, d)| d.path()).collect();
    Ok(Plan {
        stages,
        filesystems,
        disks,
        bios_disks,
        primary_disk,
    })
}

fn partition(
    wanted: &proto_mesh::Disk,
    disk: &Disk,
    names: &mut Names,
) -> Result<Stage, LayoutError> {
    let path = disk.path();
    let mut args = vec!["--clear".to_string()];
    let mut creates = Vec::new();
    let mut need_mib = GPT_OVERHEAD_MIB;
    let last = wanted.partitions.len().saturating_sub(1);
    for (at, p) in wanted.partitions.iter().enumerate() {
        let device = disk.partition(p.number);
        if !(1..=128).contains(&p.number) || creates.contains(&device) {
            return Err(LayoutError::Number {
                disk: path,
                number: p.number,
            });
        }
        // Size 0 takes the rest of the disk; later partitions would find no room.
        if p.size_mib == 0 && at != last {
            return Err(LayoutError::RestNotLast {
                disk: path,
                number: p.number,
            });
        }
        check::gpt_type(&p.gpt_type)?;
        check::partition_label(&p.label)?;
        // A partition that takes the rest needs some room too.
        need_mib = need_mib.saturating_add(p.size_mib.max(1));
        let end = if p.size_mib == 0 {
            "0".to_string()
        } else {
            format!("+{}M", p.size_mib)
        };
        args.push(format!("--new={}:0:{end}", p.number));
        args.push(format!("--typecode={}:{}", p.number, p.gpt_type));
        if !p.label.is_empty() {
            args.push(format!("--change-name={}:{}", p.number, p.label));
        }
        // The alias "selector:number" lets a layout name partitions of a disk whose kernel name it
        // does not know.
        names.add(&device)?;
        names.alias(format!("{}:{}", wanted.device, p.number), &device);
        creates.push(device);
    }
    let have_mib = disk.size / MIB;
    if need_mib > have_mib {
        return Err(LayoutError::TooSmall {
            disk: path,
            have_mib,
            need_mib,
        });
    }
    args.push(path.clone());
    let mut commands = vec![
        // A new table leaves the signature of a disk that was used as a whole, such as an array's
        // member; blkid would then report an ambiguous result.
        Cmd::new("wipefs", ["--all", "--force", path.as_str()]).optional(),
        Cmd::new("sgdisk", args),
    ];
    // sgdisk's own request to read the new table fails if the kernel still holds an old partition;
    // partx updates them one by one.
    commands.push(Cmd::new("partx", ["--update", path.as_str()]).optional());
    Ok(Stage { commands, creates })
}

/// The file systems in the order of mounting, and the stage that makes them.
fn filesystems(
    layout: &Layout,
    names: &mut Names,
    uuid: &mut impl FnMut() -> uuid::Uuid,
) -> Result<(Vec<Fs>, Stage), LayoutError> {
    let mut list = Vec::new();
    let mut make = Stage::default();
    let mut paths = BTreeSet::new();
    for wanted in &layout.filesystems {
        let fs = filesystem(wanted, names, uuid)?;
        if !fs.path.is_empty() && !paths.insert(fs.path.trim_end_matches('/').to_string()) {
            return Err(LayoutError::SamePath { path: fs.path });
        }
        make.commands.extend(mkfs(&fs, wanted));
        list.push(fs);
    }
    list.sort_by_key(|f| depth(&f.path));
    Ok((list, make))
}

fn filesystem(
    wanted: &Filesystem,
    names: &mut Names,
    uuid: &mut impl FnMut() -> uuid::Uuid,
) -> Result<Fs, LayoutError> {
    // A tmpfs without a mount point would have no line in fstab and no effect.
    let needs_path = wanted.format == "tmpfs";
    let has_path = !wanted.path.is_empty();
    if (has_path || needs_path) && !check::is_mount_point(&wanted.path) {
        let path = wanted.path.clone();
        return Err(LayoutError::Path { path });
    }
    check::mount_options(&wanted.path, &wanted.mount_options)?;
    check::create_options(&wanted.device, &wanted.create_options)?;
    check::label(&wanted.format, &wanted.label)?;
    let (device, id) = match wanted.format.as_str() {
        "tmpfs" => ("tmpfs".to_string(), String::new()),
        "vfat" => {
            // FAT has a volume id of 32 bits in place of a UUID.
            let n = uuid().as_u128() & 0xffff_ffff;
            (
                names.take(&wanted.device)?,
                format!("{:04X}-{:04X}", n >> 16, n & 0xffff),
            )
        }
        "ext3" | "ext4" | "swap" => (names.take(&wanted.device)?, uuid().to_string()),
        "none" | "" => (names.path(&wanted.device)?, String::new()),
        other => {
            let (device, format) = (wanted.device.clone(), other.to_string());
            return Err(LayoutError::Format { device, format });
        }
    };
    Ok(Fs {
        device,
        path: wanted.path.clone(),
        format: wanted.format.clone(),
        uuid: id,
        mount_options: wanted.mount_options.clone(),
    })
}

fn mkfs(fs: &Fs, wanted: &Filesystem) -> Option<Cmd> {
    let mut args: Vec<String> = Vec::new();
    let label = |flag: &str| match wanted.label.as_str() {
        "" => Vec::new(),
        text => vec![flag.to_string(), text.to_string()],
    };
    let program = match fs.format.as_str() {
        "vfat" => {
            args.extend([
                // UEFI wants FAT32 on fixed disks (specification 2.10, 13.3); mkfs would choose
                // FAT16 for a small partition.
                "-F".to_string(),
                "32".to_string(),
                "-i".to_string(),
                fs.uuid.replace('-', ""),
            ]);
            args.extend(label("-n"));
            "mkfs.vfat"
        }
        "ext3" | "ext4" => {
            args.extend(["-F", "-q", "-U", fs.uuid.as_str()].map(str::to_string));
            args.extend(label("-L"));
            // The first mount initialises tables and journal in the background; mkfs would write
            // gigabytes of zeros on a large disk.
            args.extend([
                "-E".to_string(),
                "lazy_itable_init=1,lazy_journal_init=1".to_string(),
            ]);
            if fs.format == "ext3" {
                "mkfs.ext3"
            } else {
                "mkfs.ext4"
            }
        }
        "swap" => {
            args.extend(["--uuid".to_string(), fs.uuid.clone()]);
            args.extend(label("--label"));
            "mkswap"
        }
        _ => return None,
    };
    // The device comes last: mke2fs reads a word after it as the size of the file system.
    args.extend(wanted.create_options.iter().cloned());
    args.push(fs.device.clone());
    Some(Cmd::new(program, args))
}

/// Sort key: file systems with a path first, by depth, so that parents come before children.
fn depth(path: &str) -> (bool, usize, String) {
    let parts = path.split('/').filter(|p| !p.is_empty()).count();
    (path.is_empty(), parts, path.to_string())
}

/// Checks that the machine's firmware and kernel can boot from the layout.
fn check_bootable(
    filesystems: &[Fs],
    bios_disks: &[String],
    uefi: bool,
) -> Result<(), LayoutError> {
    let root = filesystems
        .iter()
        .find(|f| f.path == "/")
        .ok_or(LayoutError::Missing("/"))?;
    if !matches!(root.format.as_str(), "ext3" | "ext4") {
        let (device, format) = (root.device.clone(), root.format.clone());
        return Err(LayoutError::Format { device, format });
    }
    let has_efi = filesystems
        .iter()
        .any(|f| f.path == "/boot/efi" && f.format == "vfat");
    match uefi {
        true if !has_efi => Err(LayoutError::NoEfi),
        false if bios_disks.is_empty() => Err(LayoutError::NoBiosBoot),
        _ => Ok(()),
    }
}

fn primary_disk(filesystems: &[Fs], chosen: &[(String, Disk)]) -> String {
    let root = filesystems
        .iter()
        .find(|f| f.path == "/")
        .map(|f| f.device.as_str());
    let holds_root = |d: &&(String, Disk)| root.is_some_and(|r| r.starts_with(&d.1.path()));
    // The longest name: `/dev/sdaa1` begins with `/dev/sda` too, and `/dev/nvme0n10p1` with
    // `/dev/nvme0n1`.
    let holders = chosen.iter().filter(holds_root);
    let holder = holders.max_by_key(|(_, d)| d.name.len());
    let disk = holder.or_else(|| chosen.first());
    disk.map(|(_, d)| d.path()).unwrap_or_default()
}

#[cfg(test)]
mod refusal_tests;
#[cfg(test)]
mod tests;
