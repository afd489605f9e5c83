//! The lint: dangers, their causes, and remarks.

use control_oslo::{
    CallAccess, DangerKind, ObjectSituation, PersonaProject, PolicyFile, PolicyLint, personas,
};

fn lint(text: &str) -> PolicyLint {
    PolicyLint::of(&PolicyFile::parse(text).unwrap()).unwrap()
}

#[test]
fn no_file_and_the_defaults_change_nothing() {
    let same = r#"{"baremetal:node:delete": "role:admin and system_scope:all"}"#;
    for text in ["", "{}", same] {
        let lint = lint(text);
        assert!(
            lint.changes.is_empty() && lint.dangerous.is_empty(),
            "{text}"
        );
    }
    let remarks = lint(same).remarks;
    assert_eq!(remarks.len(), 1);
    assert!(
        remarks[0]
            .to_string()
            .contains("it is as the default; remove it"),
        "{}",
        remarks[0]
    );
}

/// Files, the rules that are dangerous by them, and the way.
const DANGERS: &[(&str, &[&str], Option<DangerKind>)] = &[
    (
        r#"{"baremetal:node:get": "role:reader"}"#,
        &["baremetal:node:get"],
        Some(DangerKind::ForeignObjects),
    ),
    (
        r#"{"baremetal:node:delete": "@"}"#,
        &["baremetal:node:delete"],
        Some(DangerKind::ForeignObjects),
    ),
    (
        r#"{"baremetal:node:delete": "role:admin and project_id:%(node.owner)s"}"#,
        &[],
        None,
    ),
    (
        r#"{"baremetal:node:get": "not project_id:%(node.owner)s"}"#,
        &["baremetal:node:get"],
        Some(DangerKind::ForeignObjects),
    ),
    (
        r#"{"baremetal:node:list_all": "role:reader"}"#,
        &["baremetal:node:list_all"],
        Some(DangerKind::EveryProject),
    ),
    (r#"{"baremetal:node:list": "@"}"#, &[], None),
    (r#"{"baremetal:chassis:get": "@"}"#, &[], None),
    (
        r#"{"show_password": "role:admin"}"#,
        &["show_password"],
        Some(DangerKind::Passwords),
    ),
    (
        r#"{"show_instance_secrets": "role:admin and system_scope:all"}"#,
        &["show_instance_secrets"],
        Some(DangerKind::Passwords),
    ),
    (
        r#"{"baremetal:allocation:get": "project_id:%(allocation.owner)s or project_name:other"}"#,
        &["baremetal:allocation:get"],
        Some(DangerKind::ForeignObjects),
    ),
    (
        r#"{"baremetal:runbook:get": "role:reader"}"#,
        &["baremetal:runbook:get"],
        Some(DangerKind::ForeignObjects),
    ),
    (
        r#"{"baremetal:node:get": "role:Watcher"}"#,
        &["baremetal:node:get"],
        Some(DangerKind::ForeignObjects),
    ),
    (
        r#"{"baremetal:node:get": "rule:operators", "operators": "role:admin and project_name:ops"}"#,
        &["baremetal:node:get"],
        Some(DangerKind::ForeignObjects),
    ),
    (
        r#"{"baremetal:node:get": "role:watcher and system_scope:all"}"#,
        &[],
        None,
    ),
    (r#"{"baremetal:node:get": "!"}"#, &[], None),
    (
        r#"{"baremetal:node:get": "role:reader and None:%(node.owner)s"}"#,
        &[],
        None,
    ),
];

#[test]
fn gains_beyond_the_own_project_are_dangerous() {
    for (text, rules, kind) in DANGERS {
        let lint = lint(text);
        let found: Vec<&str> = lint.dangerous.iter().map(|found| found.rule.name).collect();
        for rule in *rules {
            assert!(found.contains(rule), "{text}: {found:?}");
        }
        assert_eq!(found.is_empty(), rules.is_empty(), "{text}: {found:?}");
        let first = lint
            .dangerous
            .iter()
            .find(|found| rules.contains(&found.rule.name));
        assert_eq!(
            first.map(|found| found.kinds.as_slice()),
            kind.as_ref().map(std::slice::from_ref),
            "{text}"
        );
    }
}

#[test]
fn roles_and_constants_of_the_file_get_sample_callers() {
    let personas = |text: &str| -> Vec<String> {
        let lint = lint(text);
        let get = lint
            .dangerous
            .iter()
            .find(|found| found.rule.name == "baremetal:node:get");
        get.unwrap().personas.clone()
    };
    let watchers = personas(r#"{"baremetal:node:get": "role:Watcher"}"#);
    assert_eq!(
        watchers,
        ["watcher@owner", "watcher@lessee", "watcher@other"]
    );
    let operators = personas(r#"{"baremetal:node:get": "role:admin and project_name:ops"}"#);
    assert_eq!(operators, ["project_name=ops"]);

    let roles = |count: usize| -> String {
        let roles: Vec<String> = (0..count).map(|number| format!("role:r{number}")).collect();
        format!("x: {}", roles.join(" or "))
    };
    let is_sampled = |text: &str| {
        let remarks = lint(text).remarks;
        !remarks
            .iter()
            .any(|remark| remark.problem.contains("has a sample caller"))
    };
    assert!(is_sampled(&roles(16)));
    assert!(!is_sampled(&roles(17)));
    assert!(is_sampled(&(roles(16) + " or role:r3 or role:admin")));
}

#[test]
fn the_cause_is_what_the_file_says() {
    let lint = lint(
        r#"{
            "service_role": "role:service",
            "strangers": "role:reader",
            "baremetal:port:get": "rule:strangers",
            "baremetal:node:get": "rule:strangers"
        }"#,
    );
    let causes = |rule: &str| {
        let found = lint.dangerous.iter().find(|found| found.rule.name == rule);
        found.unwrap().causes.clone()
    };
    assert_eq!(
        causes("baremetal:port:get"),
        ["baremetal:port:get", "strangers"]
    );
    assert_eq!(causes("baremetal:conductor:get"), ["service_role"]);
    let port = lint
        .dangerous
        .iter()
        .find(|found| found.rule.name == "baremetal:port:get");
    let port = port.unwrap();
    for (name, expected) in [
        ("baremetal:port:get", true),
        ("strangers", true),
        ("service_role", false),
        ("baremetal", false),
    ] {
        assert_eq!(port.is_named(name), expected, "{name}");
    }
}

/// Files, and parts of the remarks about them.
const REMARKS: &[(&str, &[&str])] = &[
    (
        "a: rule:b",
        &[
            "refers to the rule b, which does not exist",
            "decides no call of Ironic",
        ],
    ),
    (
        "default: role:x",
        &["rules that do not exist permit nobody here"],
    ),
    (
        "is_admin: role:x",
        &["\"is_admin\": a later release of Ironic removes it"],
    ),
    (
        "baremetal:node:get: role:reader and project_id:%(node.ownr)s",
        &["it reads %(node.ownr)s, which no object has"],
    ),
    (
        "baremetal:node:validate: None:%(node.owner)s",
        &["None:%(node.owner)s never holds"],
    ),
    (
        "baremetal:node:validate: rule:is_admin",
        &[
            "it refers to is_admin, which a later release of Ironic removes, and holds for the role admin in any project",
        ],
    ),
    (
        "baremetal:node:validate: rule:is_node_owner",
        &["and asks for no role"],
    ),
    (
        "baremetal:node:set_power_state: role:x",
        &[
            "\"baremetal:node:set_boot_mode\": it has no check string of its own, and gets that of \
             baremetal:node:set_power_state",
            "\"baremetal:node:set_secure_boot\"",
        ],
    ),
    (
        "baremetal:node:set_power_state: rule:is_admin",
        &[
            "it refers to is_admin",
            "as it was called, which does not change it",
            "set_secure_boot",
        ],
    ),
    ("x: role:y\nbaremetal:node:validate: rule:x", &[]),
];

#[test]
fn remarks_name_what_has_no_effect() {
    for (text, wanted) in REMARKS {
        let remarks = lint(text).remarks;
        let all: Vec<String> = remarks.iter().map(ToString::to_string).collect();
        let all = all.join("\n");
        for part in *wanted {
            assert!(all.contains(part), "{text}: {all}");
        }
        assert_eq!(remarks.is_empty(), wanted.is_empty(), "{text}: {all}");
    }
}

#[test]
fn a_hidden_object_is_no_loss_and_no_gain_twice() {
    // A caller that does not see a node loses nothing by the rule of its power.
    let lint = lint(r#"{"baremetal:node:get": "!", "baremetal:node:set_power_state": "!"}"#);
    let power = lint
        .changes
        .iter()
        .filter(|change| change.rule.name.ends_with("set_power_state"));
    assert!(
        power
            .clone()
            .all(|change| change.before == CallAccess::Yes && !change.is_gain())
    );
    assert!(power.count() > 0);
}

#[test]
fn sample_callers_and_objects() {
    let names: Vec<String> = personas().into_iter().map(|persona| persona.name).collect();
    assert_eq!(names.len(), 24);
    assert_eq!(
        names[..6].join(" "),
        "system-admin system-manager system-member system-reader system-service elevated-service"
    );
    assert_eq!(
        names[6..12].join(" "),
        "owner-admin owner-manager owner-member owner-reader owner-service owner-none"
    );
    for (situation, owner, lessee) in [
        (ObjectSituation::OwnedAndLeased, true, true),
        (ObjectSituation::Owned, true, false),
        (ObjectSituation::Leased, false, true),
        (ObjectSituation::Unowned, false, false),
        (ObjectSituation::NoObject, false, false),
    ] {
        assert_eq!(situation.involves(PersonaProject::Owner), owner);
        assert_eq!(situation.involves(PersonaProject::Lessee), lessee);
        assert!(!situation.involves(PersonaProject::Other));
    }
}
