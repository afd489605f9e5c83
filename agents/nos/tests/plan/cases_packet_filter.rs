//! The packet filter: there before a firewall is, and after it.

use agents_nos::{Capability, Membership, Refusal, Step, SwitchObject, find_drift, fit};

use crate::fixture::{Build, Case, check, port, segment_place, tenant};

fn with_firewall(vnis: &[u32]) -> Build {
    tenant().firewall("p9", vnis)
}

fn without_firewall() -> Build {
    tenant()
        .port("p9", Membership::Quarantine, false)
        .change(|model| model.packet_filter.is_in_place = true)
}

#[test]
fn a_filter_is_there_before_its_firewall_and_after_it() {
    check(vec![
        Case {
            name: "a firewall on a fresh switch",
            from: tenant().port("p9", Membership::Quarantine, false),
            to: with_firewall(&[27]),
            steps: &[
                "packet filter",
                "p9 filters VXLAN",
                "p9 enters Underlay",
                "neighbour p9",
                "p9 up",
            ],
        },
        Case {
            name: "a firewall that goes",
            from: with_firewall(&[27]),
            to: without_firewall(),
            steps: &[
                "p9 down",
                "no neighbour p9",
                "p9 leaves",
                "p9 filters no VXLAN",
            ],
        },
        Case {
            name: "a firewall whose port is a machine's now",
            from: with_firewall(&[27]).segment(10, &[]),
            to: without_firewall()
                .segment(10, &[])
                .port("p9", segment_place(10), true),
            steps: &[
                "no neighbour p9",
                "p9 leaves",
                "p9 enters 10",
                "p9 filters no VXLAN",
            ],
        },
        Case {
            name: "a firewall with one network less",
            from: with_firewall(&[27, 28]),
            to: with_firewall(&[27]),
            steps: &["p9 filters VXLAN"],
        },
    ]);
}

/// A switch that cannot filter keeps its firewalls, and says so of each.
#[test]
fn a_switch_without_filters_tells_of_each_firewall() {
    let all = Capability::ALL.iter().copied();
    let others: Vec<_> = all.filter(|c| *c != Capability::PacketFilter).collect();
    let (from, to) = (without_firewall().0, with_firewall(&[27]).0);
    let fitted = fit(&from, &to, &others);
    let problems: Vec<_> = fitted.problems.into_iter().collect();
    let refusal = Refusal::Unsupported(Capability::PacketFilter);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].object, SwitchObject::VxlanFilter(port("p9")));
    assert_eq!(problems[0].refusal, refusal);
    assert_eq!(fitted.model.ports["p9"].membership, Membership::Underlay);
    let none = fit(&from, &without_firewall().0, &others);
    assert_eq!(none.problems, []);
}

#[test]
fn a_filter_that_somebody_takes_away_is_unsafe() {
    let desired = with_firewall(&[27]).0;
    let told = |seen: &agents_nos::SwitchModel| {
        let drift = find_drift(seen, &desired, &[], Capability::ALL);
        let told = drift
            .iter()
            .map(|d| format!("{} {}", d.object, d.is_unsafe));
        told.collect::<Vec<_>>()
    };
    let mut seen = desired.clone();
    seen.packet_filter.firewalls.clear();
    assert_eq!(told(&seen), ["VXLAN filter of port p9 true"]);
    seen.packet_filter.is_in_place = false;
    let both = ["packet filter true", "VXLAN filter of port p9 true"];
    assert_eq!(told(&seen), both);
    let mut seen = desired.clone();
    seen.packet_filter = with_firewall(&[27, 28]).0.packet_filter;
    assert_eq!(told(&seen), ["VXLAN filter of port p9 true"]);
}

#[test]
fn what_a_firewall_does_waits_for_its_filter() {
    let (observed, target) = (without_firewall().0, with_firewall(&[27]).0);
    let dependencies = agents_nos::Dependencies {
        observed: &observed,
        target: &target,
    };
    let steps = agents_nos::plan(&observed, &target, Capability::ALL).steps;
    let filter = steps
        .iter()
        .find(|s| matches!(s, Step::SetVxlanFilter { .. }));
    let filter = filter.unwrap();
    let waiting = steps.iter().filter(|step| dependencies.holds(filter, step));
    let waiting: Vec<_> = waiting.map(crate::fixture::short).collect();
    assert_eq!(waiting, ["p9 enters Underlay", "neighbour p9", "p9 up"]);
}
