//! Rules of layouts beyond those of `apply`: arrays and volumes that cannot be created, and words
//! that tools would misread.
//!
//! Asked before a layout is proposed, not when the entry is applied: a rule there would need a
//! feature level, so that all nodes refuse the same entries. Layouts that were made before the rule
//! are refused by hammer, before it writes to a disk.

use std::collections::BTreeSet;

use proto_errors::Error;

use crate::catalog::entity::{
    Filesystem, Format, Layout, LogicalVolume, LvmType, Raid, VolumeGroup,
};
use crate::reply::CheckResult;

/// Devices that an array, a striped volume and a mirrored volume need at least.
const ACTIVE_MIN: usize = 2;
/// Highest number of an array that Linux takes as `/dev/mdN` without further settings.
const ARRAY_NUMBER_MAX: u32 = 511;
/// Characters of the NAME in `/dev/md/NAME`.
const ARRAY_NAME_LEN_MAX: usize = 32;
/// Endings that LVM keeps for itself.
const LVM_RESERVED: [&str; 10] = [
    "_cdata", "_cmeta", "_corig", "_mimage", "_mlog", "_pmspare", "_rimage", "_rmeta", "_tdata",
    "_tmeta",
];

/// Checks arrays, volume groups, volumes and options.
///
/// # Errors
/// `InvalidField`, with the field and its rule.
pub fn check_installable(layout: &Layout) -> CheckResult {
    layout.raids.iter().try_for_each(check_raid)?;
    unique(
        "raid.array_name",
        layout.raids.iter().map(|raid| &raid.array_name),
    )?;
    layout.volume_groups.iter().try_for_each(check_group)?;
    unique(
        "volume_groups.name",
        layout.volume_groups.iter().map(|group| &group.name),
    )?;
    for volume in &layout.logical_volumes {
        check_volume(layout, volume)?;
    }
    let volumes = layout.logical_volumes.iter();
    let volumes = volumes.map(|volume| (&volume.volume_group, &volume.name));
    let volumes: Vec<String> = volumes
        .map(|(group, name)| format!("{group}/{name}"))
        .collect();
    unique("logical_volumes.name", volumes.iter())?;
    layout.filesystems.iter().try_for_each(check_filesystem)
}

fn unique<'a>(field: &str, names: impl Iterator<Item = &'a String>) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::invalid(field, format!("\"{name}\" is there twice")));
        }
    }
    Ok(())
}

fn check_raid(raid: &Raid) -> CheckResult {
    let name = &raid.array_name;
    if !is_array_name(name) {
        let rule = format!("\"{name}\" must be /dev/mdN up to 511, or /dev/md/NAME");
        return Err(Error::invalid("raid.array_name", rule));
    }
    if raid.level == 0 && raid.spares > 0 {
        let rule = format!("of {name} must be 0: RAID 0 cannot lose a device");
        return Err(Error::invalid("raid.spares", rule));
    }
    let spares = usize::try_from(raid.spares).unwrap_or(usize::MAX);
    if raid.devices.len().saturating_sub(spares) < ACTIVE_MIN {
        let rule = format!("of {name} must be at least 2 beside its spares");
        return Err(Error::invalid("raid.devices", rule));
    }
    unique("raid.devices", raid.devices.iter())?;
    check_create_options("raid.create_options", &raid.create_options)
}

fn is_array_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("/dev/md") else {
        return false;
    };
    if let Some(name) = rest.strip_prefix('/') {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_short = (1..=ARRAY_NAME_LEN_MAX).contains(&name.len());
        return is_short && name.chars().all(plain) && !name.starts_with(['-', '.']);
    }
    let number = rest.parse::<u32>().ok().filter(|n| *n <= ARRAY_NUMBER_MAX);
    // Not "+1" and not "01", which name no device.
    number.is_some_and(|n| n.to_string() == rest)
}

fn check_group(group: &VolumeGroup) -> CheckResult {
    check_lvm_name("volume_groups.name", &group.name)?;
    if group.devices.is_empty() {
        let rule = format!("of \"{}\" must be at least 1", group.name);
        return Err(Error::invalid("volume_groups.devices", rule));
    }
    unique("volume_groups.devices", group.devices.iter())?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_+.-/=!:&#".contains(c);
    let is_bad = |tag: &&String| !tag.chars().all(plain) || tag.starts_with('-') || tag.is_empty();
    match group.tags.iter().find(is_bad) {
        None => Ok(()),
        Some(tag) => {
            let rule = format!("\"{tag}\" is no tag of LVM");
            Err(Error::invalid("volume_groups.tags", rule))
        }
    }
}

fn check_volume(layout: &Layout, volume: &LogicalVolume) -> CheckResult {
    let name = &volume.name;
    check_lvm_name("logical_volumes.name", name)?;
    let is_reserved = name.starts_with("snapshot")
        || name.starts_with("pvmove")
        || LVM_RESERVED.iter().any(|part| name.contains(part));
    if is_reserved {
        let rule = format!("\"{name}\" is kept by LVM for itself");
        return Err(Error::invalid("logical_volumes.name", rule));
    }
    let mut groups = layout.volume_groups.iter();
    let group = groups.find(|group| group.name == volume.volume_group);
    // A group that is not there is refused when the entry is applied.
    let devices = group.map_or(ACTIVE_MIN, |group| group.devices.len());
    if volume.lvm_type != LvmType::Linear && devices < ACTIVE_MIN {
        let kind = volume.lvm_type.as_str();
        let rule = format!(
            "{kind} of \"{name}\" needs 2 devices in \"{}\"",
            volume.volume_group
        );
        return Err(Error::invalid("logical_volumes.lvm_type", rule));
    }
    Ok(())
}

fn check_lvm_name(field: &str, name: &str) -> CheckResult {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+_.-".contains(c);
    let is_good = !name.is_empty()
        && name.chars().all(plain)
        && !name.starts_with('-')
        && !matches!(name, "." | "..");
    if is_good {
        return Ok(());
    }
    let rule = format!("\"{name}\" must be letters, digits and + _ . - without a hyphen first");
    Err(Error::invalid(field, rule))
}

fn check_filesystem(filesystem: &Filesystem) -> CheckResult {
    if filesystem.format == Format::Tmpfs && filesystem.path.is_none() {
        return Err(Error::invalid(
            "filesystems.path",
            "of a tmpfs must be given",
        ));
    }
    check_create_options("filesystems.create_options", &filesystem.create_options)?;
    let is_bad = |option: &&String| option.contains(|c: char| !c.is_ascii_graphic() || c == '#');
    match filesystem.mount_options.iter().find(is_bad) {
        None => Ok(()),
        Some(option) => {
            let rule = format!("\"{option}\" must be printable, without spaces and #");
            Err(Error::invalid("filesystems.mount_options", rule))
        }
    }
}

/// A path among the arguments of mkfs or mdadm would be one device more to write to.
fn check_create_options(field: &str, options: &[String]) -> CheckResult {
    let is_bad =
        |option: &&String| option.starts_with('/') || option.chars().any(|c| c.is_control());
    match options.iter().find(is_bad) {
        None => Ok(()),
        Some(option) => {
            let rule = format!("\"{option}\" must not begin with / or have control characters");
            Err(Error::invalid(field, rule))
        }
    }
}
