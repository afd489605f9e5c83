//! Policies as their authors meet them: what is refused and where, what is decided, what changes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop")]

use std::collections::BTreeSet;
use std::sync::Arc;

use control_policy::{
    CallOutcome, Compiled, MOMENTS, OutcomeChange, SitePolicies, SitePolicy, callers, check,
    compare, decide_sample,
};
use proto_public::method;
use serde_json::json;

const GUESTS: &str = include_str!("examples/guests.rego");
const OFFICE_HOURS: &str = include_str!("examples/office-hours.rego");
const BIG_MACHINES: &str = include_str!("examples/big-machines.rego");
const DELETE: &str = "metalstack.api.v2.MachineService/Delete";

/// A policy about deleting machines.
fn about_delete(rules: &str) -> String {
    format!("package site\nimport rego.v1\nmethods := {{\"{DELETE}\"}}\n{rules}")
}

fn site(sources: &[(&str, &str)]) -> Arc<SitePolicies> {
    let member =
        |(name, source): &(&str, &str)| SitePolicy::new(check(name, source).unwrap().compiled);
    Arc::new(SitePolicies::new(sources.iter().map(member).collect()))
}

fn outcome(
    site: &Arc<SitePolicies>,
    path: &str,
    caller: &str,
    request: serde_json::Value,
) -> CallOutcome {
    let callers = callers();
    let sample = callers.iter().find(|it| it.name == caller).unwrap();
    let method = method(&format!("/{path}")).unwrap();
    decide_sample(site, method, sample, MOMENTS[0].1, Some(&request)).0
}

#[test]
fn the_guides_examples_stand_their_trial() {
    for (name, source, tests) in [
        ("guests", GUESTS, 4),
        ("office-hours", OFFICE_HOURS, 3),
        ("big-machines", BIG_MACHINES, 4),
    ] {
        let checked = check(name, source).unwrap();
        assert_eq!(checked.compiled.tests().count(), tests);
        assert!(checked.calls > 20);
    }
}

#[test]
fn guests_power_but_do_not_delete() {
    let site = site(&[("guests", GUESTS)]);
    let delete = |caller| outcome(&site, DELETE, caller, json!({}));
    let denied = CallOutcome::NoBy(
        "guests/guests-delete-nothing".to_owned(),
        "ask somebody of the tenant".to_owned(),
    );
    assert_eq!(delete("guest-editor"), denied);
    assert_eq!(delete("guest-owner"), denied);
    assert_eq!(delete("editor"), CallOutcome::Yes(None));
    assert_eq!(
        delete("guest-viewer"),
        CallOutcome::No(403),
        "in the table's words"
    );
    assert_eq!(delete("stranger"), CallOutcome::No(404));
    assert_eq!(delete("nobody"), CallOutcome::No(401));
    let power = |caller, command: &str| {
        let path = "metalstack.api.v2.MachineService/BMCCommand";
        outcome(&site, path, caller, json!({ "command": command }))
    };
    let by_rule = CallOutcome::Yes(Some("guests/guests-switch-power".to_owned()));
    assert_eq!(power("guest-viewer", "MACHINE_BMC_COMMAND_ON"), by_rule);
    assert_eq!(
        power("guest-viewer", "MACHINE_BMC_COMMAND_BOOT_TO_BIOS"),
        CallOutcome::No(403)
    );
    assert_eq!(
        power("viewer", "MACHINE_BMC_COMMAND_ON"),
        CallOutcome::No(403)
    );
    assert_eq!(
        power("stranger", "MACHINE_BMC_COMMAND_ON"),
        CallOutcome::No(404)
    );
}

#[test]
fn consoles_close_in_the_night_for_administrators_too() {
    let none = Arc::new(SitePolicies::default());
    let changes = compare(&none, &site(&[("office-hours", OFFICE_HOURS)]));
    let night = |it: &OutcomeChange| it.moment == Some(MOMENTS[1].0) && !it.after.is_yes();
    assert!(changes.iter().all(night), "{changes:?}");
    let password = "/metalstack.admin.v2.MachineService/ConsolePassword";
    let who: Vec<_> = changes
        .iter()
        .filter(|it| it.method == password)
        .map(|it| it.caller)
        .collect();
    assert_eq!(who, ["admin-viewer", "admin-editor"]);
}

#[test]
fn a_size_is_for_one_tenant() {
    let site = site(&[("big-machines", BIG_MACHINES)]);
    let create = |size: &str| {
        let path = "metalstack.api.v2.MachineService/Create";
        outcome(&site, path, "owner", json!({ "size": size }))
    };
    assert_eq!(create("c1-small"), CallOutcome::Yes(None));
    let denied = "size g1-large is for the tenant research".to_owned();
    let rule = "big-machines/size-of-another-tenant".to_owned();
    assert_eq!(create("g1-large"), CallOutcome::NoBy(rule, denied));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let chain: String = (0..40)
        .map(|it| format!("r{it} if r{}\n", it + 1))
        .collect();
    let cases: &[(&str, String, &str)] = &[
        ("no word", String::new(), "night:"),
        ("syntax", about_delete("deny contains \"x\" if { input.x == }"), "night:4:35: expecting expression"),
        ("unsafe", about_delete("deny contains \"x\" if { y > 3 }"), "night:4:24: use of undefined variable"),
        ("no methods", "package site\ndeny contains \"x\" if input.x".into(), "it must say which methods it judges"),
        ("no set", about_delete("x if input.y"), "one of the sets deny, allow"),
        ("typo", about_delete("deny contains \"x\"").replace("/Delete", "/Delte"), "MachineService/Delte\" is no method"),
        ("empty", about_delete("deny contains \"x\"").replace(DELETE, ""), "is no method"),
        ("itself", about_delete("deny contains \"x\"").replace(DELETE, "metalmesh.admin.v1.PolicyService/*"), "is never judged"),
        ("http", about_delete("deny contains \"x\" if http.send({}).status_code == 200"), "night:4:22: http.send is no function"),
        ("clock", about_delete("deny contains \"x\" if time.now_ns() > 1"), "time.now_ns is no function"),
        ("dice", about_delete("deny contains \"x\" if rand.intn(\"a\", 2) == 1"), "rand.intn is no function"),
        ("much", about_delete("deny contains \"x\" if count(numbers.range(1, 1000000000)) > 1"), "numbers.range is no function"),
        ("more", about_delete("deny contains \"x\" if replace(\"a\", \"a\", \"b\") == \"b\""), "replace is no function"),
        ("talk", about_delete("deny contains \"x\" if trace(\"a\")"), "trace is no function"),
        ("files", about_delete("deny contains \"x\" if opa.runtime().env.HOME"), "opa.runtime is no function"),
        ("data", about_delete("deny contains \"x\" if data.secrets.x"), "night:4:22: a policy has no data"),
        ("import", format!("import data.other\n{}", "").replacen("import", "package site\nimport", 1) + "methods := {\"a\"}\ndeny contains \"x\"", "imports nothing but rego.v1"),
        ("recursion", about_delete("deny contains \"x\" if p\np if q\nq if p"), "needs itself"),
        ("function", about_delete("deny contains \"x\" if f(1) == 1\nf(x) := f(x)"), "needs itself"),
        ("deep", about_delete(&format!("deny contains \"x\" if r0\n{chain}r40 if input.x")), "more than 32 rules"),
        ("parts", about_delete("deny[\"x\"] := 1 if input.x"), "the name of a rule has one part"),
        ("package", about_delete("deny contains \"x\"").replace("package site", "package site[\"a b\"]"), "its package must be words"),
        ("brackets", about_delete(&format!("deny contains \"x\" if {}1{}", "[".repeat(60), "]".repeat(60))), "night:4:28: more than 6 brackets"),
        ("not a set", about_delete("deny := true if input.method"), "deny is not a set"),
        ("number", about_delete("deny contains 7 if input.method"), "deny has a member that is neither"),
        ("spaces", about_delete("deny contains \"a b\" if input.method"), "deny has a member that is neither"),
        ("division", about_delete("deny contains \"x\" if 1 / (count(input.caller) - count(input.caller)) == 1"), "cannot be evaluated"),
        ("two values", about_delete("deny contains \"x\" if v == 1\nv := 1 if input.caller\nv := 2 if input.method"), "night:"),
        ("test", about_delete("deny contains \"x\" if input.x\ntest_it if count(deny) == 1 with input as {}"), "night:5:1: test_it fails: it is not true"),
        ("rights", "package site\nmethods := {\"metalstack.admin.v2.TokenService/Create\"}\nallow contains \"x\" if input.caller.user == \"ann\"".into(), "allow can open none of its methods"),
        ("pattern", "package site\nmethods := {\"metalstack.admin.v2.MachineService/*\"}\nallow contains \"x\" if input.caller.user == \"ann\"".into(), "only when named in full"),
        ("foreign", "package site\nmethods := {\"metalstack.api.v2.MachineService/*\"}\nallow_foreign contains \"x\" if input.caller.user == \"ann\"".into(), "only when named in full"),
    ];
    let mut wrong = Vec::new();
    for (name, source, wanted) in cases {
        let said = match check("night", source) {
            Ok(_) => "it is accepted".to_owned(),
            Err(invalid) => invalid.to_string(),
        };
        if !said.contains(wanted) || !said.starts_with("night:") {
            wrong.push(format!("{name}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let long = about_delete(&"#\n".repeat(64 * 1024));
    let said = check("night", &long).unwrap_err().to_string();
    assert_eq!(said, "night: it must have at most 65536 bytes");
}

/// Six loops over ten numbers: a million rounds.
const SLOW: &str = "deny contains \"x\" if {\n\
    some a in ten; some b in ten; some c in ten; some d in ten; some e in ten; some f in ten\n\
    a + b + c + d + e + f == -1\n}\nten := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";

#[test]
fn what_never_ends_is_refused_before_and_stopped_after() {
    let said = check("slow", &about_delete(SLOW)).unwrap_err().to_string();
    assert!(said.contains("it needs more than 50000 steps"), "{said}");
    // It is slow for some requests only: they are refused, others are not.
    let sometimes = about_delete(&SLOW.replace("if {", "if {\ninput.request.uuid == \"slow\""));
    let site = site(&[("slow", &sometimes)]);
    let ask = |uuid: &str| outcome(&site, DELETE, "owner", json!({ "uuid": uuid }));
    assert_eq!(ask("quick"), CallOutcome::Yes(None));
    let why = "it needs more than 50000 steps".to_owned();
    assert_eq!(ask("slow"), CallOutcome::Broken("slow".to_owned(), why));
    assert_eq!(
        ask("quick"),
        CallOutcome::Yes(None),
        "the machine is as good as new"
    );
    let counts = site.members()[0].counts();
    let failed = counts.failed.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(failed, 1);
}

#[test]
fn methods_that_no_policy_names_are_not_judged() {
    let site = site(&[("guests", GUESTS)]);
    let judged: BTreeSet<&str> = proto_public::methods()
        .iter()
        .filter(|it| site.judges(it))
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(judged, BTreeSet::from(["BMCCommand", "Delete"]));
    let all = about_delete("deny contains \"x\" if input.method.name == \"none\"");
    let all = Compiled::new("all", &all.replace(DELETE, "*")).unwrap();
    let service = "/metalmesh.admin.v1.PolicyService/";
    assert!(all.paths().iter().all(|it| !it.starts_with(service)));
    assert!(all.paths().len() > 150);
}

#[test]
fn a_policy_that_this_program_cannot_compile_refuses_its_methods_alone() {
    let paths = BTreeSet::from([format!("/{DELETE}"), "/gone.Service/Method".to_owned()]);
    let member = SitePolicy::stored("newer", "package site\nsyntax of tomorrow", &paths);
    assert!(member.fault().unwrap().contains("newer:2:"), "{member:?}");
    let site = Arc::new(SitePolicies::new(vec![member]));
    let CallOutcome::Broken(policy, why) = outcome(&site, DELETE, "owner", json!({})) else {
        panic!("it was let through")
    };
    assert_eq!(policy, "newer");
    assert!(why.contains("this program cannot compile it"), "{why}");
    assert_eq!(
        outcome(&site, DELETE, "stranger", json!({})),
        CallOutcome::No(404)
    );
    let get = "metalstack.api.v2.MachineService/Get";
    assert_eq!(
        outcome(&site, get, "owner", json!({})),
        CallOutcome::Yes(None)
    );
}

#[test]
fn the_difference_is_told_before_it_is_made() {
    let none = Arc::new(SitePolicies::default());
    let guests = site(&[("guests", GUESTS)]);
    let changes = compare(&none, &guests);
    let lost: Vec<_> = changes.iter().map(|it| (it.caller, it.moment)).collect();
    assert_eq!(lost, [("guest-editor", None), ("guest-owner", None)]);
    let back = compare(&guests, &none);
    assert_eq!(back.len(), 2);
    assert!(back.iter().all(|it| it.after == CallOutcome::Yes(None)));
    assert!(compare(&guests, &guests).is_empty());
}

#[test]
fn the_guide_shows_the_examples_that_are_tested() {
    let guide = include_str!("../../../docs/how-to/site-policies.md");
    for example in [GUESTS, OFFICE_HOURS, BIG_MACHINES] {
        let block = format!("```rego\n{}\n```", example.trim_end());
        assert!(guide.contains(&block), "the guide differs from {example}");
    }
    assert_eq!(guide.matches("```rego").count(), 3);
}
