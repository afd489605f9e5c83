//! Arrays, volume groups and volumes: the layers between partitions and file systems.

use proto_mesh::{Layout, LogicalVolume, Raid, VolumeGroup};

use super::names::Names;
use super::{LayoutError, Stage, check};
use crate::cmd::Cmd;

/// Active devices that an array, a striped volume or a mirrored volume needs at least.
const ACTIVE_MIN: usize = 2;

/// The stage that makes an array.
pub(super) fn array(raid: &Raid, names: &mut Names) -> Result<Stage, LayoutError> {
    let array = || raid.array_name.clone();
    check::array_name(&raid.array_name)?;
    check::create_options(&raid.array_name, &raid.create_options)?;
    match (raid.level, raid.spares) {
        (0, 0) | (1, _) => {}
        (0, _) => return Err(LayoutError::SpareOfStripes { array: array() }),
        (level, _) => {
            let array = array();
            return Err(LayoutError::Level { array, level });
        }
    }
    // More spares than a usize holds are more than there are devices: refused below.
    let spares = usize::try_from(raid.spares).unwrap_or(usize::MAX);
    let active = raid.devices.len().saturating_sub(spares);
    if active < ACTIVE_MIN {
        return Err(LayoutError::TooFewActive {
            array: array(),
            devices: raid.devices.len(),
            spares: raid.spares,
        });
    }
    let devices = names.take_all(&raid.devices)?;
    // `--run` and `--force` answer mdadm's questions about old content. `--homehost=any` keeps the
    // initramfs' host name out of the superblock: the installed system would see a foreign array
    // and assemble it under another name.
    let mut args = vec![
        "--create".to_string(),
        array(),
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
    names.add(&raid.array_name)?;
    Ok(Stage {
        commands: vec![Cmd::new("mdadm", args)],
        creates: vec![raid.array_name.clone()],
    })
}

/// The stage that makes a volume group with its physical volumes.
pub(super) fn volume_group(group: &VolumeGroup, names: &mut Names) -> Result<Stage, LayoutError> {
    check::group_name(&group.name)?;
    group.tags.iter().try_for_each(|tag| check::tag(tag))?;
    if group.devices.is_empty() {
        return Err(LayoutError::EmptyGroup(group.name.clone()));
    }
    // A device that is used twice would lose its first content; `take_all` refuses it.
    let devices = names.take_all(&group.devices)?;
    let mut commands: Vec<Cmd> = devices
        .iter()
        .map(|d| {
            // Twice `--force`: a device may have been a volume of a group that is incomplete now,
            // after a power cut in an earlier attempt.
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

/// Checks that no two groups have the same name: LVM would take them for one.
pub(super) fn check_group_names(layout: &Layout) -> Result<(), LayoutError> {
    for (at, group) in layout.volume_groups.iter().enumerate() {
        if layout
            .volume_groups
            .iter()
            .take(at)
            .any(|g| g.name == group.name)
        {
            return Err(LayoutError::UsedTwice(group.name.clone()));
        }
    }
    Ok(())
}

/// The stage that makes the volume at `at` of the layout's list.
pub(super) fn logical_volume(
    layout: &Layout,
    at: usize,
    volume: &LogicalVolume,
    names: &mut Names,
) -> Result<Stage, LayoutError> {
    check::volume_name(&volume.name)?;
    let group = layout
        .volume_groups
        .iter()
        .find(|group| group.name == volume.volume_group)
        .ok_or_else(|| LayoutError::NoGroup {
            volume: volume.name.clone(),
            group: volume.volume_group.clone(),
        })?;
    check::mapper_name(&group.name, &volume.name)?;
    // `--wipesignatures`: an old file system at the same offset would make lvcreate ask, and blkid
    // find two of them.
    let mut args = vec![
        "--yes".to_string(),
        "--wipesignatures".to_string(),
        "y".to_string(),
    ];
    let later = layout.logical_volumes.iter().skip(at + 1);
    match volume.size_mib {
        0 if later.clone().any(|v| v.volume_group == group.name) => {
            let volume = volume.name.clone();
            return Err(LayoutError::VolumeRestNotLast { volume });
        }
        0 => args.extend(["--extents".to_string(), "100%FREE".to_string()]),
        mib => args.extend(["--size".to_string(), format!("{mib}m")]),
    }
    args.extend(type_arguments(volume, group)?);
    args.extend([
        "--name".to_string(),
        volume.name.clone(),
        volume.volume_group.clone(),
    ]);
    let device = format!("/dev/{}/{}", volume.volume_group, volume.name);
    names.add(&device)?;
    // The initramfs has no udev, and without it LVM makes device nodes only on request.
    let nodes = Cmd::new("lvm", ["vgmknodes"]);
    Ok(Stage {
        commands: vec![Cmd::new("lvcreate", args), nodes],
        creates: vec![device],
    })
}

/// Arguments for the volume's type. A striped volume uses all devices of its group, a mirrored one
/// two of them.
fn type_arguments(volume: &LogicalVolume, group: &VolumeGroup) -> Result<Vec<String>, LayoutError> {
    let have = group.devices.len();
    let needs_two = |kind| {
        if have >= ACTIVE_MIN {
            return Ok(());
        }
        Err(LayoutError::TooFewDevices {
            volume: volume.name.clone(),
            group: group.name.clone(),
            kind,
            have,
        })
    };
    let words = |kind: &str, flag: &str, count: usize| {
        ["--type", kind, flag, &count.to_string()]
            .map(str::to_string)
            .to_vec()
    };
    match volume.r#type.as_str() {
        "" | "linear" => Ok(Vec::new()),
        "striped" => needs_two("striped").map(|()| words("striped", "--stripes", have)),
        // `--mirrors` counts the further copies.
        "raid1" => needs_two("raid1").map(|()| words("raid1", "--mirrors", 1)),
        other => Err(LayoutError::VolumeType {
            volume: volume.name.clone(),
            kind: other.to_string(),
        }),
    }
}
