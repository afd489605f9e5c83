//! From a filesystem layout and the disks that are there to commands: partitions, arrays,
//! volumes, file systems. Pure; every refusal is known before the first byte is written.

use std::collections::BTreeMap;

use proto_mesh::{Filesystem, Layout, LogicalVolume, Raid, VolumeGroup};

use super::selector::{self, SelectorError};
use crate::cmd::Cmd;
use crate::inventory::Disk;

const MIB: u64 = 1 << 20;
/// GPT with its backup, and the alignment of the first and last partition.
const GPT_OVERHEAD_MIB: u64 = 3;
const TYPE_BIOS_BOOT: &str = "ef02";

/// Why a layout cannot be put on this machine. None gets better by trying again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error(transparent)]
    Selector(#[from] SelectorError),
    #[error("{0:?} and {1:?} of the layout are the same disk")]
    SameDisk(String, String),
    #[error("{disk} has {have_mib} MiB, the layout needs {need_mib} MiB")]
    TooSmall {
        disk: String,
        have_mib: u64,
        need_mib: u64,
    },
    #[error("{disk}: partition {number} takes the rest but is not the last")]
    RestNotLast { disk: String, number: u32 },
    #[error("{disk}: partition number {number} is not between 1 and 128, or stands there twice")]
    Number { disk: String, number: u32 },
    #[error("no device {0:?} in the layout")]
    Device(String),
    #[error("no file system for {0}")]
    Missing(&'static str),
    #[error("unknown format {format:?} of {device}")]
    Format { device: String, format: String },
    #[error("{path:?} is no mount point that can be used")]
    Path { path: String },
    #[error("a BIOS machine needs a partition of type ef02 for the boot loader")]
    NoBiosBoot,
    #[error("a UEFI machine needs a vfat file system at /boot/efi")]
    NoEfi,
}

/// A file system as it is to be made and mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fs {
    pub device: String,
    /// Empty for swap.
    pub path: String,
    pub format: String,
    /// As `blkid` prints it; empty for tmpfs.
    pub uuid: String,
    pub mount_options: Vec<String>,
}

/// All there is to do to the disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In order; after each the devices of `creates` must appear.
    pub stages: Vec<Stage>,
    /// Those with a path are sorted so that parents come first.
    pub filesystems: Vec<Fs>,
    /// Disks of the layout, for cleaning up.
    pub disks: Vec<String>,
    /// Where a BIOS boot loader goes.
    pub bios_disks: Vec<String>,
    /// The disk that holds the root file system, as far as it lies on one.
    pub primary_disk: String,
}

/// Commands, and the devices that they make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    pub commands: Vec<Cmd>,
    pub creates: Vec<String>,
}

/// Device path by what the layout calls it.
type Names = BTreeMap<String, String>;

/// Plans a layout for the disks of this machine. `uuid` gives fresh random UUIDs.
///
/// # Errors
/// When the layout does not fit the machine or contradicts itself.
pub fn plan(
    layout: &Layout,
    disks: &[Disk],
    uefi: bool,
    mut uuid: impl FnMut() -> uuid::Uuid,
) -> Result<Plan, LayoutError> {
    let mut names = Names::new();
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
    for raid in &layout.raids {
        stages.push(array(raid, &mut names)?);
    }
    for group in &layout.volume_groups {
        stages.push(volume_group(group, &names)?);
    }
    for volume in &layout.logical_volumes {
        stages.push(logical_volume(volume, &mut names));
    }
    let mut filesystems = Vec::new();
    let mut make = Stage::default();
    for wanted in &layout.filesystems {
        let fs = filesystem(wanted, &names, &mut uuid)?;
        make.commands.extend(mkfs(&fs, wanted));
        filesystems.push(fs);
    }
    stages.push(make);
    filesystems.sort_by_key(|f| depth(&f.path));
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
        if p.size_mib == 0 && at != last {
            return Err(LayoutError::RestNotLast {
                disk: path,
                number: p.number,
            });
        }
        need_mib += p.size_mib.max(1);
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
        names.insert(format!("{}:{}", wanted.device, p.number), device.clone());
        names.insert(device.clone(), device.clone());
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
        Cmd::new("wipefs", ["--all", "--force", path.as_str()]).optional(),
        Cmd::new("sgdisk", args),
    ];
    // Where the kernel was busy when sgdisk asked it to read the new table.
    commands.push(Cmd::new("partx", ["--update", path.as_str()]).optional());
    Ok(Stage { commands, creates })
}

fn array(raid: &Raid, names: &mut Names) -> Result<Stage, LayoutError> {
    let devices = raid
        .devices
        .iter()
        .map(|d| lookup(names, d))
        .collect::<Result<Vec<_>, _>>()?;
    let active = devices.len().saturating_sub(raid.spares as usize);
    let mut args = vec![
        "--create".to_string(),
        raid.array_name.clone(),
        "--run".to_string(),
        "--force".to_string(),
        "--homehost=any".to_string(),
        format!("--level={}", raid.level),
        format!("--raid-devices={active}"),
    ];
    if raid.spares > 0 {
        args.push(format!("--spare-devices={}", raid.spares));
    }
    args.extend(raid.create_options.iter().cloned());
    args.extend(devices);
    names.insert(raid.array_name.clone(), raid.array_name.clone());
    Ok(Stage {
        commands: vec![Cmd::new("mdadm", args)],
        creates: vec![raid.array_name.clone()],
    })
}

fn volume_group(group: &VolumeGroup, names: &Names) -> Result<Stage, LayoutError> {
    let devices = group
        .devices
        .iter()
        .map(|d| lookup(names, d))
        .collect::<Result<Vec<_>, _>>()?;
    let mut commands: Vec<Cmd> = devices
        .iter()
        .map(|d| {
            Cmd::new(
                "pvcreate",
                ["--yes", "--force", "--force", "--zero", "y", d.as_str()],
            )
        })
        .collect();
    let mut args = vec!["--yes".to_string()];
    for tag in &group.tags {
        args.extend(["--addtag".to_string(), tag.clone()]);
    }
    args.push(group.name.clone());
    args.extend(devices);
    commands.push(Cmd::new("vgcreate", args));
    Ok(Stage {
        commands,
        creates: Vec::new(),
    })
}

fn logical_volume(volume: &LogicalVolume, names: &mut Names) -> Stage {
    let mut args = vec![
        "--yes".to_string(),
        "--wipesignatures".to_string(),
        "y".to_string(),
    ];
    match volume.size_mib {
        0 => args.extend(["--extents".to_string(), "100%FREE".to_string()]),
        mib => args.extend(["--size".to_string(), format!("{mib}m")]),
    }
    match volume.r#type.as_str() {
        "" | "linear" => {}
        "striped" => args.extend([
            "--type".to_string(),
            "striped".to_string(),
            "--stripes".to_string(),
            "2".to_string(),
        ]),
        other => args.extend(["--type".to_string(), other.to_string()]),
    }
    args.extend([
        "--name".to_string(),
        volume.name.clone(),
        volume.volume_group.clone(),
    ]);
    let device = format!("/dev/{}/{}", volume.volume_group, volume.name);
    names.insert(device.clone(), device.clone());
    // Without udev LVM makes its device nodes only when told to.
    let nodes = Cmd::new("lvm", ["vgmknodes"]);
    Stage {
        commands: vec![Cmd::new("lvcreate", args), nodes],
        creates: vec![device],
    }
}

fn filesystem(
    wanted: &Filesystem,
    names: &Names,
    uuid: &mut impl FnMut() -> uuid::Uuid,
) -> Result<Fs, LayoutError> {
    if !wanted.path.is_empty() && !is_mount_point(&wanted.path) {
        return Err(LayoutError::Path {
            path: wanted.path.clone(),
        });
    }
    let (device, id) = match wanted.format.as_str() {
        "tmpfs" => ("tmpfs".to_string(), String::new()),
        "vfat" => {
            let n = uuid().as_u128() & 0xffff_ffff;
            (
                lookup(names, &wanted.device)?,
                format!("{:04X}-{:04X}", n >> 16, n & 0xffff),
            )
        }
        "ext3" | "ext4" | "swap" => (lookup(names, &wanted.device)?, uuid().to_string()),
        "none" | "" => (lookup(names, &wanted.device)?, String::new()),
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

/// Absolute, without `..`, and of characters that fstab takes as they are.
fn is_mount_point(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    path.starts_with('/') && path.chars().all(plain) && !path.split('/').any(|p| p == "..")
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
    args.extend(wanted.create_options.iter().cloned());
    args.push(fs.device.clone());
    Some(Cmd::new(program, args))
}

fn lookup(names: &Names, device: &str) -> Result<String, LayoutError> {
    names
        .get(device)
        .cloned()
        .ok_or_else(|| LayoutError::Device(device.to_string()))
}

/// Swap and its like last, then by how deep the path goes.
fn depth(path: &str) -> (bool, usize, String) {
    let parts = path.split('/').filter(|p| !p.is_empty()).count();
    (path.is_empty(), parts, path.to_string())
}

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
    let disk = chosen.iter().find(holds_root).or_else(|| chosen.first());
    disk.map(|(_, d)| d.path()).unwrap_or_default()
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
