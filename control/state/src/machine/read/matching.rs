//! Matching of hardware with sizes and filesystem layouts.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, SizeId};

use crate::catalog::entity::{Layout, Size, SizeConstraint, SizeConstraintType};
use crate::catalog::read::glob;
use crate::machine::entity::{Hardware, Machine};
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Bytes per MiB.
const MIB: u64 = 1024 * 1024;

/// The one size that the hardware matches; `None` if no size matches, or more than one.
pub fn match_size(tables: &Tables, hardware: &Hardware) -> Option<SizeId> {
    let mut matching = matching_sizes(tables, hardware);
    // Two matching sizes are a mistake in the catalog: a machine without a size is not on offer, so
    // that the mistake shows, and no tenant gets a size by chance.
    match (matching.next(), matching.next()) {
        (Some(only), None) => Some(only.id.clone()),
        _ => None,
    }
}

/// Every size that the hardware matches.
pub fn matching_sizes<'a>(
    tables: &'a Tables,
    hardware: &'a Hardware,
) -> impl Iterator<Item = &'a Arc<Size>> {
    tables
        .all::<Size>()
        .filter(|size| fits(&size.constraints, hardware))
}

/// `true` if every constraint holds, and at least one constraint covers each CPU, disk and GPU.
/// Otherwise a machine with a GPU would be given away as one without.
fn fits(constraints: &[SizeConstraint], hardware: &Hardware) -> bool {
    let of = |kind| constraints.iter().filter(move |c| c.kind == kind);
    let covered = |kind, name: &str| of(kind).any(|c| selects(c, name));
    // A size without constraints would match every machine without CPU, disk and GPU.
    !constraints.is_empty()
        && constraints
            .iter()
            .all(|c| (c.min..=c.max).contains(&amount(c, hardware)))
        && hardware
            .cpus
            .iter()
            .all(|cpu| covered(SizeConstraintType::Cores, &cpu.model))
        && hardware
            .disks
            .iter()
            .filter(|disk| disk.is_fixed())
            .all(|disk| covered(SizeConstraintType::Storage, &disk.name))
        && hardware
            .gpus
            .iter()
            .all(|gpu| covered(SizeConstraintType::Gpu, &gpu.model))
}

/// `true` if a constraint covers a part of this name.
fn selects(constraint: &SizeConstraint, name: &str) -> bool {
    match constraint.identifier.as_deref() {
        // No pattern covers every part of the kind.
        None | Some("") => true,
        Some(pattern) => glob(pattern.as_bytes(), name.as_bytes()),
    }
}

/// The amount of hardware that a constraint counts.
fn amount(constraint: &SizeConstraint, hardware: &Hardware) -> u64 {
    match constraint.kind {
        SizeConstraintType::Memory => hardware.memory,
        SizeConstraintType::Cores => hardware
            .cpus
            .iter()
            .filter(|cpu| selects(constraint, &cpu.model))
            .map(|cpu| u64::from(cpu.cores))
            .sum(),
        SizeConstraintType::Storage => hardware
            .disks
            .iter()
            // A stick that somebody left in the machine must not change its size.
            .filter(|disk| disk.is_fixed() && selects(constraint, &disk.name))
            .map(|disk| disk.size)
            .sum(),
        SizeConstraintType::Gpu => {
            let count = hardware
                .gpus
                .iter()
                .filter(|gpu| selects(constraint, &gpu.model))
                .count();
            u64::try_from(count).unwrap_or(u64::MAX)
        }
    }
}

/// Refuses a layout whose named disks are missing or too small. Selectors (`@first`) take any
/// fixed disk that is big enough.
pub(crate) fn check_layout_fits(layout: &Layout, hardware: &Hardware) -> CheckResult {
    let refuse = |why: String| {
        Err(Error::new(
            ErrorCode::LayoutDoesNotFit,
            format!("filesystem layout \"{}\" does not fit: {why}", layout.id),
        )
        .object("filesystem-layout", &layout.id))
    };
    for disk in &layout.disks {
        let needed = disk.partitions.iter().map(|p| p.size_mib).sum::<u64>() * MIB;
        let mut candidates = hardware.disks.iter().filter(|have| {
            have.is_fixed() && (disk.device.starts_with('@') || have.name == disk.device)
        });
        match candidates.next() {
            None => return refuse(format!("the machine has no disk {}", disk.device)),
            Some(have) if have.size < needed => {
                return refuse(format!(
                    "disk {} has {} MiB, {} MiB are needed",
                    have.name,
                    have.size / MIB,
                    needed / MIB
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Refuses a layout that the disks of a machine cannot take: `FilesystemService.Match`.
///
/// # Errors
/// `LayoutDoesNotFit`, or that the machine does not exist.
pub fn check_layout(tables: &Tables, machine: MachineId, layout: &Layout) -> CheckResult {
    let machine = tables.require::<Machine>(&machine)?;
    check_layout_fits(layout, &machine.hardware)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::entity::{BlockDevice, Cpu};

    fn constraint(kind: SizeConstraintType, min: u64, max: u64) -> SizeConstraint {
        SizeConstraint {
            kind,
            min,
            max,
            identifier: None,
        }
    }

    fn hardware(cores: u32, memory: u64, disk: u64) -> Hardware {
        Hardware {
            memory,
            cpus: vec![Cpu {
                cores,
                threads: cores,
                ..Cpu::default()
            }],
            disks: vec![BlockDevice {
                name: "/dev/sda".into(),
                size: disk,
                ..BlockDevice::default()
            }],
            ..Hardware::default()
        }
    }

    #[test]
    fn a_size_must_cover_everything() {
        use SizeConstraintType::{Cores, Memory, Storage};
        let full = [
            constraint(Cores, 1, 2),
            constraint(Memory, 1, 1000),
            constraint(Storage, 1, 1000),
        ];
        let cases = [
            (&full[..], hardware(2, 500, 500), true),
            (&full[..], hardware(4, 500, 500), false),
            (&full[..], hardware(2, 5000, 500), false),
            (&full[..2], hardware(2, 500, 500), false),
            (&full[..2], hardware(2, 500, 0), true),
            (&[], hardware(2, 500, 0), false),
        ];
        for (constraints, machine, expected) in cases {
            assert_eq!(
                fits(constraints, &machine),
                expected,
                "{constraints:?} {machine:?}"
            );
        }
    }
}
