//! Filesystem layouts.

use control_gate::refusal::invalid;
use control_state::{self as state};
use proto_public::api::v2;
use tonic::Status;

use super::enums::{format, from_format, from_gpt_type, from_lvm_type, gpt_type, lvm_type};
use super::{chosen, meta, new_meta, parse, parse_all};

/// A layout for the wire.
pub fn layout(layout: &state::Layout) -> v2::FilesystemLayout {
    v2::FilesystemLayout {
        id: layout.id.to_string(),
        meta: meta(&layout.meta),
        name: layout.name.clone(),
        description: layout.description.clone(),
        filesystems: layout.filesystems.iter().map(filesystem).collect(),
        disks: layout.disks.iter().map(disk).collect(),
        raid: layout.raids.iter().map(raid).collect(),
        volume_groups: layout.volume_groups.iter().map(volume_group).collect(),
        logical_volumes: layout.logical_volumes.iter().map(logical_volume).collect(),
        constraints: Some(v2::FilesystemLayoutConstraints {
            sizes: layout
                .constraints
                .sizes
                .iter()
                .map(ToString::to_string)
                .collect(),
            images: layout.constraints.images.clone().into_iter().collect(),
        }),
    }
}

fn filesystem(filesystem: &state::Filesystem) -> v2::Filesystem {
    v2::Filesystem {
        device: filesystem.device.clone(),
        format: format(filesystem.format),
        name: filesystem.name.clone(),
        description: filesystem.description.clone(),
        path: filesystem.path.clone(),
        label: filesystem.label.clone(),
        mount_options: filesystem.mount_options.clone(),
        create_options: filesystem.create_options.clone(),
    }
}

fn disk(disk: &state::Disk) -> v2::Disk {
    let partition = |partition: &state::DiskPartition| v2::DiskPartition {
        number: partition.number,
        label: partition.label.clone(),
        size: partition.size_mib,
        gpt_type: partition.gpt_type.map(gpt_type),
    };
    v2::Disk {
        device: disk.device.clone(),
        partitions: disk.partitions.iter().map(partition).collect(),
    }
}

fn raid(raid: &state::Raid) -> v2::Raid {
    v2::Raid {
        array_name: raid.array_name.clone(),
        devices: raid.devices.clone(),
        level: match raid.level {
            0 => v2::RaidLevel::RaidLevel0.into(),
            _ => v2::RaidLevel::RaidLevel1.into(),
        },
        create_options: raid.create_options.clone(),
        spares: i32::try_from(raid.spares).unwrap_or(i32::MAX),
    }
}

fn volume_group(group: &state::VolumeGroup) -> v2::VolumeGroup {
    v2::VolumeGroup {
        name: group.name.clone(),
        devices: group.devices.clone(),
        tags: group.tags.clone(),
    }
}

fn logical_volume(volume: &state::LogicalVolume) -> v2::LogicalVolume {
    v2::LogicalVolume {
        name: volume.name.clone(),
        volume_group: volume.volume_group.clone(),
        size: volume.size_mib,
        lvm_type: lvm_type(volume.lvm_type),
    }
}

/// A layout from the wire.
///
/// # Errors
/// `invalid_argument`.
pub fn from_layout(layout: v2::FilesystemLayout) -> Result<state::Layout, Status> {
    Ok(state::Layout {
        id: parse("filesystem_layout.id", &layout.id)?,
        meta: new_meta(layout.meta),
        name: layout.name,
        description: layout.description,
        filesystems: from_filesystems(layout.filesystems)?,
        disks: from_disks(layout.disks)?,
        raids: from_raids(layout.raid)?,
        volume_groups: from_volume_groups(layout.volume_groups),
        logical_volumes: from_logical_volumes(layout.logical_volumes)?,
        constraints: layout
            .constraints
            .map(from_constraints)
            .transpose()?
            .unwrap_or_default(),
    })
}

/// Filesystems from the wire.
///
/// # Errors
/// `invalid_argument` for an unspecified format.
pub fn from_filesystems(
    filesystems: Vec<v2::Filesystem>,
) -> Result<Vec<state::Filesystem>, Status> {
    let read = |one: v2::Filesystem| {
        let format = from_format(one.format)
            .ok_or_else(|| invalid("filesystems.format", "is unspecified"))?;
        Ok(state::Filesystem {
            device: one.device,
            format,
            name: one.name,
            description: one.description,
            path: one.path,
            label: one.label,
            mount_options: one.mount_options,
            create_options: one.create_options,
        })
    };
    filesystems.into_iter().map(read).collect()
}

/// Disks from the wire.
///
/// # Errors
/// `invalid_argument` for an unspecified GPT type.
pub fn from_disks(disks: Vec<v2::Disk>) -> Result<Vec<state::Disk>, Status> {
    let partition = |one: v2::DiskPartition| {
        Ok(state::DiskPartition {
            number: one.number,
            label: one.label,
            size_mib: one.size,
            gpt_type: chosen("disks.partitions.gpt_type", one.gpt_type, from_gpt_type)?,
        })
    };
    let read = |one: v2::Disk| {
        Ok(state::Disk {
            device: one.device,
            partitions: one
                .partitions
                .into_iter()
                .map(partition)
                .collect::<Result<_, Status>>()?,
        })
    };
    disks.into_iter().map(read).collect()
}

/// RAIDs from the wire.
///
/// # Errors
/// `invalid_argument` for an unspecified level or a negative count.
pub fn from_raids(raids: Vec<v2::Raid>) -> Result<Vec<state::Raid>, Status> {
    let read = |one: v2::Raid| {
        let level = match one.level() {
            v2::RaidLevel::RaidLevel0 => 0,
            v2::RaidLevel::RaidLevel1 => 1,
            v2::RaidLevel::Unspecified => return Err(invalid("raid.level", "is unspecified")),
        };
        let spares =
            u32::try_from(one.spares).map_err(|_| invalid("raid.spares", "is negative"))?;
        Ok(state::Raid {
            array_name: one.array_name,
            devices: one.devices,
            level,
            create_options: one.create_options,
            spares,
        })
    };
    raids.into_iter().map(read).collect()
}

/// Volume groups from the wire.
pub fn from_volume_groups(groups: Vec<v2::VolumeGroup>) -> Vec<state::VolumeGroup> {
    let read = |one: v2::VolumeGroup| state::VolumeGroup {
        name: one.name,
        devices: one.devices,
        tags: one.tags,
    };
    groups.into_iter().map(read).collect()
}

/// Logical volumes from the wire.
///
/// # Errors
/// `invalid_argument` for an unknown type.
pub fn from_logical_volumes(
    volumes: Vec<v2::LogicalVolume>,
) -> Result<Vec<state::LogicalVolume>, Status> {
    let read = |one: v2::LogicalVolume| {
        let lvm_type = from_lvm_type(one.lvm_type)
            .ok_or_else(|| invalid("logical_volumes.lvm_type", "is unspecified"))?;
        Ok(state::LogicalVolume {
            name: one.name,
            volume_group: one.volume_group,
            size_mib: one.size,
            lvm_type,
        })
    };
    volumes.into_iter().map(read).collect()
}

/// Constraints from the wire.
///
/// # Errors
/// `invalid_argument` for a malformed size id.
pub fn from_constraints(
    constraints: v2::FilesystemLayoutConstraints,
) -> Result<state::LayoutConstraints, Status> {
    Ok(state::LayoutConstraints {
        sizes: parse_all("constraints.sizes", &constraints.sizes)?,
        images: constraints.images.into_iter().collect(),
    })
}
