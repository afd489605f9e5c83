//! Decisions beside those of oslo.policy 6.0.1 over the rules of Ironic 39.0.0, which
//! `tests/conformance/ironic_policy.py` printed.

use std::collections::BTreeMap;

use control_oslo::{Persona, PersonaProject, PolicyTarget, personas};

use crate::{METALSMITH, policy};

/// The sample objects of the script, in its order.
fn targets() -> [PolicyTarget<'static>; 9] {
    let owner = Some(PersonaProject::Owner.id());
    let lessee = Some(PersonaProject::Lessee.id());
    [
        PolicyTarget::node(owner, lessee),
        PolicyTarget::node(owner, None),
        PolicyTarget::node(None, lessee),
        PolicyTarget::node(None, None),
        PolicyTarget::allocation(owner),
        PolicyTarget::allocation(None),
        PolicyTarget::runbook(owner),
        PolicyTarget::runbook(None),
        PolicyTarget::none(),
    ]
}

/// Objects without an owner, by their place in `targets`.
const UNOWNED: [usize; 4] = [2, 3, 5, 7];
/// A rule that compares the caller's project with itself, whatever the object is.
const OF_CALLER: &str = "target:of-caller";

fn decisions(text: &str) -> BTreeMap<&str, Vec<u32>> {
    text.lines()
        .map(|line| {
            let mut words = line.split(' ');
            let rule = words.next().unwrap();
            let masks = words.map(|mask| u32::from_str_radix(mask, 16).unwrap());
            (rule, masks.collect())
        })
        .collect()
}

/// Compares every rule, sample caller and sample object. Returns the rules in which oslo.policy takes
/// an absent project for the absent owner of an object, the one difference.
fn differing(file: &str, printed: &str) -> Vec<String> {
    let policy = policy(file);
    let printed = decisions(printed);
    assert_eq!(printed.len(), policy.rules().len());
    let personas = personas();
    let mask = |rule: &str, target: &PolicyTarget<'_>| -> u32 {
        let permitted = |persona: &Persona| {
            let decision = policy.decide(rule, &persona.credentials, target);
            u32::from(decision.is_permitted())
        };
        let bits = personas.iter().enumerate();
        bits.map(|(bit, persona)| permitted(persona) << bit).sum()
    };
    let without_project: u32 = personas
        .iter()
        .enumerate()
        .filter(|(_, persona)| persona.name.starts_with("system-"))
        .map(|(bit, _)| 1_u32 << bit)
        .sum();
    let mut differing = Vec::new();
    for (rule, masks) in printed {
        assert_eq!(masks.len(), targets().len(), "{rule}");
        for (place, (theirs, target)) in masks.into_iter().zip(targets()).enumerate() {
            let ours = mask(rule, &target);
            if ours == theirs {
                continue;
            }
            assert_eq!(ours & !theirs, 0, "{rule}, object {place}: we permit more");
            assert_eq!(
                theirs & !ours & !without_project,
                0,
                "{rule}, object {place}"
            );
            let is_absent = UNOWNED.contains(&place) || rule == OF_CALLER;
            assert!(is_absent, "{rule}, object {place}");
            if differing.last().is_none_or(|last| last != rule) {
                differing.push(rule.to_owned());
            }
        }
    }
    differing
}

#[test]
fn the_defaults_decide_as_in_oslo_policy() {
    let printed = include_str!("../data/defaults.decisions");
    let expected = [
        "baremetal:node:delete:self_owned_node",
        "baremetal:port:create",
        "baremetal:port:delete",
        "baremetal:portgroup:create",
        "baremetal:portgroup:delete",
        "is_allocation_owner",
        "is_node_owner",
    ];
    assert_eq!(differing("", printed), expected);
}

#[test]
fn the_language_means_the_same_as_in_oslo_policy() {
    let file = include_str!("../data/language.json");
    let printed = include_str!("../data/language.decisions");
    let expected = [
        "allocation",
        "baremetal:node:delete:self_owned_node",
        "baremetal:port:create",
        "baremetal:port:delete",
        "baremetal:portgroup:create",
        "baremetal:portgroup:delete",
        "is_allocation_owner",
        "is_node_owner",
        "or:in:and",
        "or:then:and",
        "owner",
        "runbook",
        "space:wide",
        "target:of-caller",
    ];
    assert_eq!(differing(file, printed), expected);
}

#[test]
fn names_of_earlier_releases_reach_as_far_as_in_oslo_policy() {
    let file = include_str!("../data/old-names.yaml");
    let differing = differing(file, include_str!("../data/old-names.decisions"));
    assert!(
        differing.contains(&"baremetal:node:get:driver_info".to_owned()),
        "{differing:?}"
    );
}

#[test]
fn the_guides_files_decide_as_in_oslo_policy() {
    let metalsmith = differing(
        METALSMITH,
        include_str!("../data/guide-metalsmith.decisions"),
    );
    // A reader of the system might change nodes that nobody owns.
    let opened = "baremetal:node:set_provision_state".to_owned();
    assert!(metalsmith.contains(&opened), "{metalsmith:?}");
    let sections = include_str!("../data/guide-sections.yaml");
    let sections = differing(sections, include_str!("../data/guide-sections.decisions"));
    assert!(sections.contains(&opened), "{sections:?}");
}
