//! Each invariant of [`Truth`] by a history that violates it, and a history that violates none.

use super::*;

const A: Uuid = Uuid::from_u128(0xa);
const B: Uuid = Uuid::from_u128(0xb);

fn truth() -> Truth {
    let truth = Truth::new([Uuid::from_u128(1), Uuid::from_u128(2)].into_iter(), 2);
    (0..2).for_each(|disk| truth.wiped(0, disk));
    truth
}

fn what(truth: &Truth) -> String {
    truth.violation().map(|v| v.what).unwrap_or_default()
}

#[test]
fn a_good_life_violates_nothing() {
    let truth = truth();
    truth.installs(0, (A, 1), A);
    truth.allocated(0, A);
    truth.installs(0, (A, 2), A);
    truth.restart_ordered(0);
    truth.restarted(0);
    truth.leaves(0);
    truth.powered_off(0);
    (0..2).for_each(|disk| truth.wiped(0, disk));
    truth.allocated(0, B);
    assert_eq!(what(&truth), "");
    assert_eq!(truth.checks()["no double allocation"], 2);
}

#[test]
fn each_violation_is_seen() {
    type Wrong = fn(&Truth);
    let rows: [(&str, Wrong); 11] = [
        ("while it is", |t| t.allocated(0, B)),
        ("begun twice", |t| t.installs(0, (A, 1), A)),
        ("was wiped", |t| t.wiped(0, 1)),
        ("switched off under", |t| t.powered_off(0)),
        ("not wiped", |t| t.allocated(1, B)),
        ("beside others'", |t| t.installs(1, (B, 1), A)),
        ("restarted 1 times on 0", |t| t.restarted(1)),
        ("while its BMC holds", |t| t.joined(0, "mm-b", "mm-a")),
        ("while its BMC holds", |t| t.joined(0, "", "")),
        ("a second time", |t| t.joined(0, "mm-c", "mm-c")),
        ("asked by", |t| t.bmc_asked(1, "fleet-2", false)),
    ];
    for (expected, wrong) in rows {
        let truth = truth();
        truth.allocated(0, A);
        truth.installs(0, (A, 1), A);
        truth.joined(0, "mm-c", "mm-c");
        assert_eq!(what(&truth), "", "{expected}");
        wrong(&truth);
        assert!(
            what(&truth).contains(expected),
            "{expected}: {}",
            what(&truth)
        );
        assert!(truth.violated.is_cancelled());
    }
}

#[test]
fn an_allocation_is_on_one_machine() {
    let truth = truth();
    (0..2).for_each(|disk| truth.wiped(1, disk));
    truth.allocated(0, A);
    truth.installs(1, (A, 1), A);
    assert!(what(&truth).contains("as well"), "{}", what(&truth));
}
