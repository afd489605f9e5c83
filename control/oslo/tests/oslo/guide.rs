//! The guide's policy file for Metalsmith, as it is printed there: its intent holds, and the lint finds
//! what else it opens.

use std::collections::BTreeSet;

use control_oslo::{
    CallAccess, DangerKind, ObjectSituation, PolicyFile, PolicyLint, RuleSubject, ironic,
};

use crate::{METALSMITH, persona, policy};

/// Rules that the guide means to give to owners of nodes and of allocations.
const MEANT: [&str; 12] = [
    "baremetal:node:get",
    "baremetal:node:update_extra",
    "baremetal:node:update_instance_info",
    "baremetal:node:validate",
    "baremetal:node:set_provision_state",
    "baremetal:node:vif:list",
    "baremetal:node:vif:attach",
    "baremetal:node:vif:detach",
    "baremetal:allocation:get",
    "baremetal:allocation:delete",
    "baremetal:allocation:update",
    "baremetal:allocation:create_restricted",
];

fn lint(text: &str) -> PolicyLint {
    PolicyLint::of(&PolicyFile::parse(text).unwrap()).unwrap()
}

#[test]
fn the_guides_intent_holds() {
    let policy = policy(METALSMITH);
    for rule in MEANT {
        let id = policy.rule_id(rule).unwrap();
        let subject = policy.rule(id).unwrap().registered.unwrap().subject;
        let answer = |name: &str, situation: ObjectSituation| {
            let caller = persona(name).credentials;
            policy
                .decide(rule, &caller, &situation.target(subject))
                .is_permitted()
        };
        for owner in ["owner-admin", "owner-member"] {
            assert!(answer(owner, ObjectSituation::Owned), "{rule}: {owner}");
        }
        assert!(answer("system-admin", ObjectSituation::Unowned), "{rule}");
        if subject == RuleSubject::EveryProject {
            continue;
        }
        for stranger in [
            "other-member",
            "other-reader",
            "lessee-member",
            "system-reader",
        ] {
            assert!(
                !answer(stranger, ObjectSituation::Owned),
                "{rule}: {stranger}"
            );
        }
        // An object without an owner is nobody's.
        for caller in [
            "owner-member",
            "other-member",
            "system-reader",
            "system-member",
        ] {
            assert!(
                !answer(caller, ObjectSituation::Unowned),
                "{rule}: {caller}"
            );
        }
    }
    for list in ["baremetal:node:list", "baremetal:allocation:list"] {
        let none = ObjectSituation::NoObject.target(RuleSubject::OwnProject);
        let caller = persona("owner-none").credentials;
        assert!(policy.decide(list, &caller, &none).is_permitted());
        assert!(
            !policy
                .decide(&format!("{list}_all"), &caller, &none)
                .is_permitted()
        );
    }
}

#[test]
fn the_guide_opens_what_belongs_to_others() {
    let lint = lint(METALSMITH);
    let dangerous: BTreeSet<&str> = lint.dangerous.iter().map(|found| found.rule.name).collect();
    for rule in MEANT {
        assert!(dangerous.contains(rule), "{rule}: {dangerous:?}");
    }
    // By the name that these had before: what a node's BMC is, and how it is reached.
    for rule in [
        "baremetal:node:get:driver_info",
        "baremetal:node:get:last_error",
        "baremetal:node:inventory:get",
        "baremetal:node:get:filter_threshold",
    ] {
        let found = lint.dangerous.iter().find(|found| found.rule.name == rule);
        assert_eq!(found.unwrap().causes, ["baremetal:node:get"], "{rule}");
    }
    // Lists are limited to the caller's project.
    assert!(!dangerous.contains("baremetal:node:list"));
    let node = |found: &&control_oslo::DangerousRule| found.rule.name == MEANT[4];
    let provision = lint.dangerous.iter().find(node).unwrap();
    assert_eq!(provision.kinds, [DangerKind::ForeignObjects]);
    assert_eq!(
        provision.personas,
        ["owner-admin", "lessee-admin", "other-admin"]
    );
    let restricted = lint
        .dangerous
        .iter()
        .find(|found| found.rule.name == MEANT[11]);
    let restricted = restricted.unwrap();
    assert_eq!(restricted.kinds, [DangerKind::EveryProject]);
    assert_eq!(restricted.personas.len(), 18, "{:?}", restricted.personas);
}

#[test]
fn gains_and_losses_of_the_guide() {
    let lint = lint(METALSMITH);
    let find = |rule: &str, persona: &str, situation| {
        lint.changes.iter().find(|change| {
            change.rule.name == rule && change.persona == persona && change.situation == situation
        })
    };
    let owned = ObjectSituation::Owned;
    let gained = find(MEANT[4], "other-admin", owned).unwrap();
    assert_eq!(
        (gained.before, gained.after),
        (CallAccess::No, CallAccess::Yes)
    );
    assert!(gained.is_gain());
    assert_eq!(gained.danger, Some(DangerKind::ForeignObjects));
    assert_eq!(
        gained.reason,
        "permitted by rule baremetal:node:set_provision_state: role:admin of rule admin_api"
    );
    // A reader of the owner gains writes, on the project's own nodes.
    let reader = find(MEANT[4], "owner-reader", owned).unwrap();
    assert!(reader.is_gain() && reader.danger.is_none());
    // Tenants of a node lose sight of it, and readers of the system of all nodes.
    for (caller, situation) in [
        ("lessee-member", ObjectSituation::OwnedAndLeased),
        ("lessee-reader", ObjectSituation::Leased),
        ("system-reader", owned),
    ] {
        let lost = find(MEANT[0], caller, situation).unwrap();
        assert_eq!(
            (lost.before, lost.after),
            (CallAccess::Yes, CallAccess::No),
            "{caller}"
        );
    }
    // With that they lose calls whose rules the file does not name.
    let power = "baremetal:node:set_power_state";
    let lost = find(power, "lessee-member", ObjectSituation::OwnedAndLeased).unwrap();
    assert_eq!(
        (lost.before, lost.after),
        (CallAccess::Yes, CallAccess::Hidden)
    );
    assert!(
        lost.reason
            .starts_with("refused by rule baremetal:node:get: "),
        "{}",
        lost.reason
    );
}

#[test]
fn the_other_sections_of_the_guide_are_dangerous_too() {
    let lint = lint(include_str!("../data/guide-sections.yaml"));
    let found = |rule: &str| lint.dangerous.iter().any(|found| found.rule.name == rule);
    assert!(found("baremetal:port:get"));
    assert!(found("baremetal:allocation:create_restricted"));
    // Nodes stay hidden; the rule would permit it as soon as one is seen.
    assert!(found("baremetal:node:set_provision_state"));
    let hidden = lint.changes.iter().find(|change| {
        change.rule.name == "baremetal:node:set_provision_state" && change.persona == "other-admin"
    });
    assert_eq!(hidden.unwrap().after, CallAccess::Hidden);
}

#[test]
fn the_same_intent_without_danger() {
    let safe = r#"
"baremetal:node:update_extra": "role:admin and system_scope:all or role:member and project_id:%(node.owner)s"
"baremetal:node:set_provision_state": "role:admin and system_scope:all or role:member and (project_id:%(node.owner)s or project_id:%(node.lessee)s)"
"baremetal:node:list": ""
"#;
    let lint = lint(safe);
    assert!(lint.dangerous.is_empty(), "{:?}", lint.dangerous);
    let gained: BTreeSet<&str> = lint
        .changes
        .iter()
        .filter(|change| change.is_gain())
        .map(|change| change.rule.name)
        .collect();
    assert_eq!(
        gained,
        BTreeSet::from(["baremetal:node:list", "baremetal:node:set_provision_state"])
    );
    assert!(ironic::policy(&PolicyFile::parse(safe).unwrap()).is_ok());
}
