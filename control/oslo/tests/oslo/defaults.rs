//! The table of Ironic's rules, beside the list that was read from a running Ironic 39.0.0.

use std::collections::BTreeMap;

use control_oslo::{
    CheckExpression, ObjectSituation, PolicyFile, RegisteredRule, RuleSubject, TokenScope, ironic,
};
use serde_json::{Value, json};

use crate::{persona, policy};

fn printed() -> Vec<Value> {
    let text = include_str!("../data/ironic-policy-rules.json");
    serde_json::from_str(text).unwrap()
}

/// A rule of the table in the form of the list.
fn listed(rule: &RegisteredRule) -> Value {
    let scopes: Vec<&str> = rule.scopes.iter().map(Into::into).collect();
    let calls: Vec<Vec<&str>> = rule
        .calls
        .iter()
        .map(|call| call.splitn(2, ' ').collect())
        .collect();
    json!({
        "name": rule.name, "check_str": rule.check, "ops": calls,
        "scope_types": if scopes.is_empty() { Value::Null } else { json!(scopes) },
        "deprecated": rule.old.map(|old| old.check),
    })
}

#[test]
fn the_table_is_the_list_of_ironic() {
    let rules = ironic::rules();
    let ours: BTreeMap<&str, Value> = rules.iter().map(|rule| (rule.name, listed(rule))).collect();
    assert_eq!((ours.len(), rules.len()), (133, 133));
    for theirs in printed() {
        let name = theirs["name"].as_str().unwrap();
        assert_eq!(ours.get(name), Some(&theirs), "{name}");
    }
}

#[test]
fn every_default_is_read_and_needs_few_checks() {
    fn checks(expression: &CheckExpression) -> usize {
        match expression {
            CheckExpression::Not(inner) => checks(inner),
            CheckExpression::All(parts) | CheckExpression::Any(parts) => {
                parts.iter().map(checks).sum()
            }
            _ => 1,
        }
    }
    for rule in ironic::rules() {
        let read: CheckExpression = rule.check.parse().unwrap();
        assert!(checks(&read) < 20, "{}: {}", rule.name, checks(&read));
        if let Some(old) = rule.old {
            old.check.parse::<CheckExpression>().unwrap();
        }
        let is_call = !matches!(rule.subject, RuleSubject::Part | RuleSubject::Secrets);
        assert_eq!(is_call, !rule.calls.is_empty(), "{}", rule.name);
    }
    let policy = ironic::policy(&PolicyFile::default()).unwrap();
    assert_eq!(policy.rules().len(), 133);
}

/// Core rules, an object, and the sample callers among `CALLERS` that are permitted.
const CORE: &[(&str, ObjectSituation, &str)] = {
    use ObjectSituation::{Leased, NoObject, Owned, OwnedAndLeased, Unowned};
    &[
        (
            "baremetal:node:get",
            OwnedAndLeased,
            "SA SM SR OA OM OR LA LM LR os",
        ),
        ("baremetal:node:get", Owned, "SA SM SR OA OM OR os"),
        ("baremetal:node:get", Leased, "SA SM SR LA LM LR"),
        ("baremetal:node:get", Unowned, "SA SM SR"),
        (
            "baremetal:node:get:driver_info",
            OwnedAndLeased,
            "SA SM SR OA OM OR os",
        ),
        (
            "baremetal:node:set_power_state",
            OwnedAndLeased,
            "SA SM OA OM LA LM",
        ),
        (
            "baremetal:node:set_provision_state",
            OwnedAndLeased,
            "SA SM OA OM LA os",
        ),
        ("baremetal:node:set_provision_state", Unowned, "SA SM"),
        (
            "baremetal:node:update:lessee",
            OwnedAndLeased,
            "SA SM OA OM os",
        ),
        ("baremetal:node:update:owner", OwnedAndLeased, "SA SM"),
        ("baremetal:node:traits:set", OwnedAndLeased, "SA SM OA os"),
        ("baremetal:node:delete", OwnedAndLeased, "SA"),
        (
            "baremetal:node:delete:self_owned_node",
            OwnedAndLeased,
            "OA",
        ),
        (
            "baremetal:node:list",
            NoObject,
            "SA SM SR OA OM OR LA LM LR XA XM XR os xs",
        ),
        ("baremetal:node:list_all", NoObject, "SA SM SR"),
        ("baremetal:node:create", NoObject, "SA"),
        (
            "baremetal:node:create:self_owned_node",
            NoObject,
            "SA OA LA XA os xs",
        ),
        ("baremetal:port:create", OwnedAndLeased, "SA OA os"),
        ("baremetal:allocation:get", Owned, "SA SM SR OA OM OR"),
        ("baremetal:allocation:update", Owned, "SA SM OA OM"),
        (
            "baremetal:allocation:create",
            NoObject,
            "SA SM OA OM LA LM XA XM",
        ),
        ("baremetal:allocation:create_restricted", NoObject, "SA SM"),
        ("baremetal:runbook:delete", Owned, "SA SM OA os xs"),
        ("baremetal:chassis:get", NoObject, "SA SM SR"),
        (
            "baremetal:driver:ipa_lookup",
            NoObject,
            "SA SM SR OA OM OR LA LM LR XA XM XR os xs n",
        ),
        ("show_password", NoObject, ""),
    ]
};

const CALLERS: [(&str, &str); 15] = [
    ("SA", "system-admin"),
    ("SM", "system-member"),
    ("SR", "system-reader"),
    ("OA", "owner-admin"),
    ("OM", "owner-member"),
    ("OR", "owner-reader"),
    ("LA", "lessee-admin"),
    ("LM", "lessee-member"),
    ("LR", "lessee-reader"),
    ("XA", "other-admin"),
    ("XM", "other-member"),
    ("XR", "other-reader"),
    ("os", "owner-service"),
    ("xs", "other-service"),
    ("n", "other-none"),
];

#[test]
fn core_rules_permit_whom_ironic_means() {
    let policy = policy("");
    for (rule, situation, expected) in CORE {
        let id = policy.rule_id(rule).unwrap();
        let subject = policy.rule(id).unwrap().registered.unwrap().subject;
        assert!(ObjectSituation::of(subject).contains(situation), "{rule}");
        let target = situation.target(subject);
        let permitted: Vec<&str> = CALLERS
            .into_iter()
            .filter(|(_, name)| {
                let caller = persona(name).credentials;
                policy.decide(rule, &caller, &target).is_permitted()
            })
            .map(|(short, _)| short)
            .collect();
        assert_eq!(permitted.join(" "), *expected, "{rule} {situation:?}");
    }
}

#[test]
fn scopes_of_the_table() {
    let scopes = |name: &str| {
        let rules = ironic::rules();
        let rule = rules.into_iter().find(|rule| rule.name == name);
        rule.unwrap().scopes.to_vec()
    };
    assert_eq!(scopes("baremetal:chassis:get"), [TokenScope::System]);
    assert_eq!(
        scopes("baremetal:allocation:create_pre_rbac"),
        [TokenScope::Project]
    );
    assert_eq!(
        scopes("baremetal:node:get"),
        [TokenScope::System, TokenScope::Project]
    );
    assert!(scopes("is_admin").is_empty());
}
