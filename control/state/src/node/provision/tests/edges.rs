//! The table has the edges, states and verbs of Ironic itself.

use std::collections::{BTreeMap, BTreeSet};

use strum::VariantArray as _;

use crate::node::entity::ProvisionState;
use crate::node::provision::ProvisionEvent;
use crate::node::provision::table::EDGES;

/// The machine of Ironic itself.
const IRONIC: &str = include_str!("../ironic-39.0.0.txt");

/// Lines of [`IRONIC`] that begin with a word, without it.
fn lines(first: &str) -> Vec<Vec<&'static str>> {
    let split = |line: &'static str| line.split(" | ").collect::<Vec<_>>();
    let lines = IRONIC.lines().filter(|line| !line.starts_with('#'));
    let lines = lines
        .map(split)
        .filter(|parts| parts.first() == Some(&first));
    lines.map(|parts| parts[1..].to_vec()).collect()
}

fn state(name: &str) -> ProvisionState {
    let mut all = ProvisionState::VARIANTS.iter().copied();
    let found = all.find(|state| state.as_str() == name);
    found.unwrap_or_else(|| panic!("no state {name}"))
}

fn event(name: &str) -> ProvisionEvent {
    let mut all = ProvisionEvent::VARIANTS.iter().copied();
    let found = all.find(|event| event.as_str() == name);
    found.unwrap_or_else(|| panic!("no event {name}"))
}

#[test]
fn the_table_has_the_edges_of_ironic() {
    let expected: BTreeSet<_> = lines("edge")
        .iter()
        .map(|edge| (state(edge[0]), event(edge[1]), state(edge[2])))
        .collect();
    let found: BTreeSet<_> = EDGES.iter().copied().collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), EDGES.len(), "no edge is there twice");
    for from in ProvisionState::VARIANTS {
        for by in ProvisionEvent::VARIANTS {
            let edge = EDGES.iter().find(|edge| (edge.0, edge.1) == (*from, *by));
            assert_eq!(from.next(*by), edge.map(|edge| edge.2), "{from:?} {by:?}");
        }
    }
}

#[test]
fn every_state_is_stable_or_has_its_target() {
    let known = lines("state");
    assert_eq!(known.len(), ProvisionState::VARIANTS.len());
    for line in known {
        let (name, expected) = (line[0], line[1]);
        let target = state(name).target();
        let shown = target.map_or("stable", ProvisionState::as_str);
        assert_eq!(shown, expected, "{name}");
        assert_eq!(state(name).is_stable(), expected == "stable", "{name}");
        assert!(
            !(state(name).is_stable() && state(name).is_working()),
            "{name}"
        );
    }
}

#[test]
fn verbs_are_those_of_ironic() {
    let known: BTreeMap<_, _> = lines("verb")
        .iter()
        .map(|verb| (verb[0], verb[1]))
        .collect();
    for (verb, expected) in &known {
        let found = ProvisionEvent::of_verb(verb);
        assert_eq!(found.map(ProvisionEvent::as_str), Some(*expected), "{verb}");
    }
    // Reports of the machine are no verbs, and neither are states.
    for other in [
        "done",
        "fail",
        "wait",
        "hold",
        "resume",
        "delete",
        "available",
        "",
    ] {
        assert_eq!(ProvisionEvent::of_verb(other), None, "{other}");
    }
    // Every other event is reached by a verb.
    let by_verb: BTreeSet<_> = known
        .keys()
        .filter_map(|verb| ProvisionEvent::of_verb(verb))
        .collect();
    for other in ProvisionEvent::VARIANTS {
        use ProvisionEvent::{Done, Fail, Hold, Resume, Wait};
        let is_report = matches!(other, Done | Fail | Wait | Hold | Resume);
        assert_eq!(by_verb.contains(other), !is_report, "{other:?}");
    }
}
