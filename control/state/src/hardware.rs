//! Which size a machine has, and whether a layout fits on its disks.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::SizeId;

use crate::entities::{Hardware, Layout, Size, SizeConstraint, SizeConstraintType};
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

/// Shell pattern: `*` is anything, `?` is one byte.
///
/// On a mismatch only the newest star takes one byte more: what an earlier one could take instead
/// cannot help. So the steps are at most pattern times text, however many stars there are.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Behind the newest star, and where the text goes on that the star does not take.
    let mut newest: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(read) {
        match (pattern.get(at), &mut newest) {
            (Some(b'*'), _) => {
                at += 1;
                newest = Some((at, read));
            }
            (Some(wanted), _) if *wanted == b'?' || wanted == byte => {
                at += 1;
                read += 1;
            }
            (_, Some((after, from))) => {
                *from += 1;
                (at, read) = (*after, *from);
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(at).all(|byte| *byte == b'*')
}

/// Whether some hardware could match both.
pub(crate) fn overlap(one: &[SizeConstraint], other: &[SizeConstraint]) -> bool {
    use SizeConstraintType::{Cores, Gpu, Memory, Storage};
    [Cores, Memory, Storage, Gpu].into_iter().all(|kind| {
        let of = |all: &[SizeConstraint]| {
            all.iter()
                .filter(|c| c.kind == kind)
                .cloned()
                .collect::<Vec<_>>()
        };
        let (mine, theirs) = (of(one), of(other));
        match (mine.is_empty(), theirs.is_empty()) {
            (true, true) => true,
            // Memory is not subject to coverage: no constraint means any.
            _ if kind == Memory && (mine.is_empty() || theirs.is_empty()) => true,
            // Coverage: without a constraint there must be none of it at all.
            (true, false) => theirs.iter().all(|c| c.min == 0),
            (false, true) => mine.iter().all(|c| c.min == 0),
            (false, false) => mine.iter().all(|a| {
                theirs
                    .iter()
                    .filter(|b| identifiers_meet(a, b))
                    .all(|b| a.min <= b.max && b.min <= a.max)
                    && (theirs.iter().any(|b| identifiers_meet(a, b)) || a.min == 0)
            }),
        }
    })
}

fn identifiers_meet(a: &SizeConstraint, b: &SizeConstraint) -> bool {
    let a = a.identifier.as_deref().unwrap_or("*");
    let b = b.identifier.as_deref().unwrap_or("*");
    a.is_empty()
        || b.is_empty()
        || glob(a.as_bytes(), b.as_bytes())
        || glob(b.as_bytes(), a.as_bytes())
}

/// Refuses a layout whose named disks are missing or too small. Selectors (`@first`) take any
/// fixed disk that is big enough.
pub(crate) fn check_layout(layout: &Layout, hardware: &Hardware) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::{BlockDevice, Cpu};

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
}
