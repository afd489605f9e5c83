//! Filesystem layouts.

use std::collections::BTreeSet;

use proto_errors::{Error, ErrorCode};

use crate::catalog::command::{CreateLayout, DeleteLayout, UpdateLayout};
use crate::catalog::entity::{LAYOUT_DEFAULT, Layout, Size};
use crate::catalog::read::Requirement;
use crate::fields::{check_description, check_name, in_use, set};
use crate::references;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

fn check_layout(tx: &Tx<'_>, layout: &Layout) -> CheckResult {
    if layout.id.as_str() == LAYOUT_DEFAULT {
        return Err(Error::invalid(
            "id",
            "\"default\" is the name of the built-in layout",
        ));
    }
    if let Some(name) = &layout.name {
        check_name(name)?;
    }
    check_description(layout.description.as_deref().unwrap_or_default())?;
    check_disks(layout)?;
    check_volumes(layout)?;
    check_filesystems(layout)?;
    for size in &layout.constraints.sizes {
        tx.tables().require::<Size>(size)?;
    }
    for requirement in layout.constraints.images.values() {
        Requirement::parse(requirement)?;
    }
    check_collision(tx, layout)
}

fn check_disks(layout: &Layout) -> CheckResult {
    let mut devices = BTreeSet::new();
    for disk in &layout.disks {
        if !devices.insert(&disk.device) {
            return Err(Error::invalid(
                "disks.device",
                format!("\"{}\" is there twice", disk.device),
            ));
        }
        let mut numbers = BTreeSet::new();
        for (at, partition) in disk.partitions.iter().enumerate() {
            if !numbers.insert(partition.number) {
                let rule = format!("{} of {} is there twice", partition.number, disk.device);
                return Err(Error::invalid("disks.partitions.number", rule));
            }
            if partition.size_mib == 0 && at + 1 != disk.partitions.len() {
                let rule = format!("0 (the rest of {}) must come last", disk.device);
                return Err(Error::invalid("disks.partitions.size", rule));
            }
        }
    }
    Ok(())
}

fn check_volumes(layout: &Layout) -> CheckResult {
    if layout
        .raids
        .iter()
        .any(|raid| raid.level > 1 || raid.devices.is_empty())
    {
        return Err(Error::invalid(
            "raid",
            "must have level 0 or 1, and devices",
        ));
    }
    for (at, volume) in layout.logical_volumes.iter().enumerate() {
        let group = &volume.volume_group;
        if !layout
            .volume_groups
            .iter()
            .any(|known| known.name == *group)
        {
            let rule = format!("\"{group}\" is not a volume group of this layout");
            return Err(Error::invalid("logical_volumes.volume_group", rule));
        }
        let last = !layout
            .logical_volumes
            .iter()
            .skip(at + 1)
            .any(|v| v.volume_group == *group);
        if volume.size_mib == 0 && !last {
            let rule = format!("0 (the rest of {group}) must come last");
            return Err(Error::invalid("logical_volumes.size", rule));
        }
    }
    Ok(())
}

fn check_filesystems(layout: &Layout) -> CheckResult {
    let mut paths = BTreeSet::new();
    for filesystem in &layout.filesystems {
        let Some(path) = &filesystem.path else {
            continue;
        };
        if !path.starts_with('/') {
            return Err(Error::invalid(
                "filesystems.path",
                format!("\"{path}\" must begin with /"),
            ));
        }
        if !paths.insert(path) {
            return Err(Error::invalid(
                "filesystems.path",
                format!("\"{path}\" is there twice"),
            ));
        }
    }
    Ok(())
}

/// Refuses a layout with the same size, operating system and requirement as another: both would be
/// the default of the same machines. Between overlapping requirements the order of ids decides.
fn check_collision(tx: &Tx<'_>, layout: &Layout) -> CheckResult {
    let mine = &layout.constraints;
    let clash = tx.tables().all::<Layout>().find(|other| {
        let theirs = &other.constraints;
        other.id != layout.id
            && !mine.sizes.is_disjoint(&theirs.sizes)
            && mine
                .images
                .iter()
                .any(|(os, requirement)| theirs.images.get(os) == Some(requirement))
    });
    clash.map_or(Ok(()), |other| {
        Err(Error::new(
            ErrorCode::LayoutsCollide,
            format!(
                "filesystem layout \"{}\" matches what \"{}\" does",
                layout.id, other.id
            ),
        )
        .object("filesystem-layout", &layout.id))
    })
}

pub(crate) fn create_layout(tx: &mut Tx<'_>, op: &CreateLayout) -> ApplyResult {
    check_layout(tx, &op.0)?;
    tx.create(op.0.clone()).map(Reply::Layout)
}

pub(crate) fn update_layout(tx: &mut Tx<'_>, op: &UpdateLayout) -> ApplyResult {
    let mut layout: Layout = tx.require(&op.id)?;
    op.lock
        .check("filesystem-layout", op.id.as_str(), &layout.meta)?;
    layout.name = op.name.clone().or(layout.name);
    layout.description = op.description.clone().or(layout.description);
    set(&mut layout.filesystems, op.filesystems.as_ref());
    set(&mut layout.disks, op.disks.as_ref());
    set(&mut layout.raids, op.raids.as_ref());
    set(&mut layout.volume_groups, op.volume_groups.as_ref());
    set(&mut layout.logical_volumes, op.logical_volumes.as_ref());
    set(&mut layout.constraints, op.constraints.as_ref());
    check_layout(tx, &layout)?;
    Ok(Reply::Layout(tx.update(layout)))
}

pub(crate) fn delete_layout(tx: &mut Tx<'_>, op: &DeleteLayout) -> ApplyResult {
    if let Some(machine) = references::machine_of_layout(tx.tables(), &op.0) {
        let (id, by) = (op.0.as_str(), machine.to_string());
        return Err(in_use("filesystem layout", id, "machine", &by));
    }
    let old = tx.delete::<Layout>(&op.0);
    old.map(Reply::Layout)
        .ok_or_else(|| Error::not_found("filesystem-layout", &op.0))
}
