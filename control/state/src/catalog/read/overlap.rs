//! Overlap of sizes: two that some hardware matches both.

use crate::catalog::entity::{SizeConstraint, SizeConstraintType};
use crate::catalog::read::glob;

/// `true` if some hardware could match both. Where that cannot be excluded by bounds it is taken
/// to be possible; the order of the two does not matter.
pub(crate) fn overlap(one: &[SizeConstraint], other: &[SizeConstraint]) -> bool {
    use SizeConstraintType::{Cores, Gpu, Memory, Storage};
    // A size without constraints matches no hardware.
    !one.is_empty()
        && !other.is_empty()
        && [Cores, Memory, Storage, Gpu].into_iter().all(|kind| {
            let of = |all: &[SizeConstraint]| -> Vec<SizeConstraint> {
                all.iter().filter(|c| c.kind == kind).cloned().collect()
            };
            let (mine, theirs) = (of(one), of(other));
            allows(&mine, &theirs) && allows(&theirs, &mine)
        })
}

/// `true` if what `covering` selects can be as much as each of `constraints` needs, and what lies
/// wholly within one of them is not more than that one takes. All are of one kind.
fn allows(constraints: &[SizeConstraint], covering: &[SizeConstraint]) -> bool {
    constraints.iter().all(|one| {
        let within = covering.iter().filter(|other| contains(one, other));
        let least = within.map(|other| other.min).max().unwrap_or(0);
        // Memory need not be covered: without a constraint any is allowed.
        let most = match one.kind == SizeConstraintType::Memory {
            true => u64::MAX,
            false => {
                let met = covering.iter().filter(|other| identifiers_meet(one, other));
                met.map(|other| other.max).fold(0, u64::saturating_add)
            }
        };
        least <= one.max && one.min <= most
    })
}

/// The glob by which a constraint selects.
pub(crate) fn pattern(constraint: &SizeConstraint) -> &[u8] {
    match constraint.identifier.as_deref() {
        None | Some("") => b"*",
        Some(pattern) => pattern.as_bytes(),
    }
}

/// `true` if `one` surely selects all that `other` selects.
fn contains(one: &SizeConstraint, other: &SizeConstraint) -> bool {
    let (one, other) = (pattern(one), pattern(other));
    // As a text, a star is one byte, which `?` must not stand for.
    one == other || (!one.contains(&b'?') && glob(one, other))
}

/// `true` if some text matches both globs.
fn identifiers_meet(one: &SizeConstraint, other: &SizeConstraint) -> bool {
    let (one, other) = (pattern(one), pattern(other));
    let is_plain = |pattern: &[u8]| !pattern.contains(&b'*') && !pattern.contains(&b'?');
    if is_plain(one) && is_plain(other) {
        return one == other;
    }
    let is_stars = |rest: &[u8]| rest.iter().all(|byte| *byte == b'*');
    // For each rest of `other`, from the whole of it to none: whether the rest of `one` meets it.
    let rests = (0..=other.len()).map(|at| other.get(at..).is_none_or(is_stars));
    let mut met: Vec<bool> = rests.collect();
    for (at, mine) in one.iter().enumerate().rev() {
        // At first for what `other` has left at its end, which is nothing.
        let mut is_met = one.get(at..).is_none_or(is_stars);
        let mut longer = vec![is_met];
        for (theirs, pair) in other.iter().zip(met.windows(2)).rev() {
            let [without_mine, without_both] = pair else {
                continue;
            };
            is_met = match (mine, theirs) {
                (b'*', _) | (_, b'*') => *without_mine || is_met,
                (b'?', _) | (_, b'?') => *without_both,
                (mine, theirs) => mine == theirs && *without_both,
            };
            longer.push(is_met);
        }
        longer.reverse();
        met = longer;
    }
    met.first() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraint(kind: SizeConstraintType, min: u64, max: u64) -> SizeConstraint {
        SizeConstraint {
            kind,
            min,
            max,
            identifier: None,
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
