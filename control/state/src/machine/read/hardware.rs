//! Which size a machine has, and whether a layout fits on its disks.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, SizeId};

use crate::catalog::entity::{Layout, Size, SizeConstraint, SizeConstraintType};
use crate::catalog::read::glob;
use crate::machine::entity::{Hardware, Machine};
use crate::tables::Tables;

const MIB: u64 = 1024 * 1024;

/// The one size that the hardware matches; none when it is none, or more than one.
pub fn match_size(tables: &Tables, hardware: &Hardware) -> Option<SizeId> {
    let mut matching = matching_sizes(tables, hardware);
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

/// Every constraint holds, and every CPU, disk and GPU is covered by at least one.
fn fits(constraints: &[SizeConstraint], hardware: &Hardware) -> bool {
    let of = |kind| constraints.iter().filter(move |c| c.kind == kind);
    let covered = |kind, name: &str| of(kind).any(|c| selects(c, name));
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

fn selects(constraint: &SizeConstraint, name: &str) -> bool {
    match constraint.identifier.as_deref() {
        None | Some("") => true,
        Some(pattern) => glob(pattern.as_bytes(), name.as_bytes()),
    }
}

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
pub(crate) fn check_layout_fits(layout: &Layout, hardware: &Hardware) -> Result<(), Error> {
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

/// Whether the disks of a machine can take a layout: `FilesystemService.Match`.
pub fn check_layout(tables: &Tables, machine: MachineId, layout: &Layout) -> Result<(), Error> {
    let machine = tables.require::<Machine>(&machine)?;
    check_layout_fits(layout, &machine.hardware)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::read::{identifiers_meet, overlap};
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

    #[test]
    fn identifiers_are_globs() {
        for (pattern, text, expected) in [
            ("/dev/sd*", "/dev/sda", true),
            ("/dev/sd*", "/dev/nvme0n1", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*EPYC*", "AMD EPYC 7502", true),
            ("", "", true),
            ("", "a", false),
            ("**", "a", true),
            ("*a*b", "xaxxab", true),
            ("*a*b", "xaxxaba", false),
            ("*ab", "aab", true),
            ("*a?b", "aaab", true),
            ("a*", "", false),
            ("a", "ab", false),
        ] {
            assert_eq!(
                glob(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn sizes_overlap_when_one_machine_could_be_both() {
        use SizeConstraintType::{Cores, Memory, Storage};
        let small = [constraint(Cores, 1, 2), constraint(Memory, 1, 10)];
        let big = [constraint(Cores, 3, 4), constraint(Memory, 1, 10)];
        let wide = [constraint(Cores, 2, 3), constraint(Memory, 5, 20)];
        let disk = [constraint(Cores, 1, 2), constraint(Storage, 1, 9)];
        assert!(!overlap(&small, &big));
        assert!(overlap(&small, &wide));
        assert!(!overlap(&small, &disk));
        assert!(overlap(&small, &small));
    }

    #[test]
    fn sizes_overlap_in_either_order() {
        use SizeConstraintType::{Cores, Memory, Storage};
        let named = |kind, pattern: &str, min, max| SizeConstraint {
            identifier: Some(pattern.to_owned()),
            ..constraint(kind, min, max)
        };
        let disk = |pattern: &str, min, max| named(Storage, pattern, min, max);
        let cases = [
            (
                vec![disk("/dev/sd*", 1, 9)],
                vec![disk("/dev/sd*", 9, 20)],
                true,
            ),
            (
                vec![disk("/dev/sd*", 1, 9)],
                vec![disk("/dev/sd*", 10, 20)],
                false,
            ),
            // The second kind of disk is covered by nothing of the other size.
            (
                vec![disk("/dev/sd*", 1, 9)],
                vec![disk("/dev/sd*", 1, 9), disk("/dev/nvme*", 1, 9)],
                false,
            ),
            (
                vec![disk("/dev/sd*", 1, 9)],
                vec![disk("/dev/sd*", 1, 9), disk("/dev/nvme*", 0, 9)],
                true,
            ),
            // All disks together are as many as the two kinds.
            (
                vec![constraint(Storage, 7, 8)],
                vec![disk("/dev/sd*", 1, 2), disk("/dev/nvme*", 5, 6)],
                true,
            ),
            (
                vec![constraint(Storage, 9, 10)],
                vec![disk("/dev/sd*", 1, 2), disk("/dev/nvme*", 5, 6)],
                false,
            ),
            (
                vec![constraint(Storage, 1, 4)],
                vec![disk("/dev/sd*", 1, 2), disk("/dev/nvme*", 5, 6)],
                false,
            ),
            (
                vec![named(Cores, "*EPYC*", 1, 4)],
                vec![named(Cores, "AMD*", 1, 4)],
                true,
            ),
            (
                vec![named(Cores, "Intel*", 1, 4)],
                vec![named(Cores, "AMD*", 1, 4)],
                false,
            ),
            (
                vec![constraint(Cores, 0, 4)],
                vec![constraint(Memory, 0, 4)],
                true,
            ),
            (vec![constraint(Cores, 0, 4)], vec![], false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(overlap(&one, &other), expected, "{one:?} {other:?}");
            assert_eq!(overlap(&other, &one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn globs_meet_when_some_text_matches_both() {
        for (one, other, expected) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a?", "ab", true),
            ("a?", "a", false),
            ("*", "", true),
            ("a*", "*b", true),
            ("a*c", "ab*", true),
            ("a*c", "b*", false),
            ("s*a", "sd?", true),
            ("**", "?", true),
            ("a*b*c", "a?c", true),
            ("a*bb*c", "a?c", false),
        ] {
            let of = |pattern: &str| SizeConstraint {
                identifier: Some(pattern.to_owned()),
                ..constraint(SizeConstraintType::Cores, 0, 1)
            };
            let (one, other) = (of(one), of(other));
            assert_eq!(
                identifiers_meet(&one, &other),
                expected,
                "{one:?} {other:?}"
            );
            assert_eq!(
                identifiers_meet(&other, &one),
                expected,
                "{other:?} {one:?}"
            );
        }
    }
}
