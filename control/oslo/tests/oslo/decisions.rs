//! The meaning of checks, beyond the table of decisions that oslo.policy itself made.

use control_oslo::{CallerAttribute, Credentials, PolicyDecision, PolicyTarget, TokenScope};

use crate::{compiled, of_check, permits, persona, policy};

fn member() -> Credentials {
    Credentials::project("p", ["Member"])
        .with(CallerAttribute::UserId, "u")
        .with(CallerAttribute::ProjectName, "demo")
}

#[test]
fn an_absent_value_equals_nothing() {
    let system = Credentials::system(["admin", "manager", "member", "reader"]);
    let unowned = PolicyTarget::node(None, None);
    for check in [
        "project_id:%(node.owner)s",
        "project_id:%(node.lessee)s",
        "project_id:%(project_id)s",
        "domain_id:%(node.owner)s",
        "None:%(node.owner)s",
        "None:None",
        "'None':%(node.owner)s",
        "user_id:%(user_id)s",
        "project_id:x%(node.owner)s",
        "'x':x%(node.owner)s",
    ] {
        assert!(!permits(check, &system, &unowned), "{check}");
    }
    // Empty texts are absent ones, of callers and of objects.
    let empty = Credentials::project("", ["member"]);
    assert!(!permits(
        "project_id:%(node.owner)s",
        &empty,
        &PolicyTarget::node(Some(""), None)
    ));
    // Texts that read None are texts.
    let called_none = Credentials::project("None", ["member"]);
    assert!(!permits(
        "project_id:%(node.owner)s",
        &called_none,
        &unowned
    ));
    assert!(!permits("project_id:None", &called_none, &unowned));
    // The constant asks for a caller without the attribute.
    assert!(permits("project_id:None", &system, &unowned));
    assert!(!permits("project_id:None", &member(), &unowned));
}

#[test]
fn checks_of_callers_and_objects() {
    let node = PolicyTarget::node(Some("p"), Some("q"));
    for (check, expected) in [
        ("project_id:%(node.owner)s", true),
        ("project_id:%(node.lessee)s", false),
        ("user_id:%(user_id)s", true),
        ("user_id:u", true),
        ("user_id:U", false),
        ("role:member", true),
        ("role:MEMBER", true),
        ("role:members", false),
        ("role:membe", false),
        ("roles:Member", true),
        ("roles:member", false),
        ("role:%(node.owner)s", false),
        ("role:mem%(node.nothing)s", false),
        ("service_roles:service", false),
        ("is_public_api:True", false),
        ("project_id:%(allocation.owner)s", false),
        ("'pq':%(node.owner)s%(node.lessee)s", true),
        ("'p-q':%(node.owner)s-%(node.lessee)s", true),
        ("'p-q':%(node.owner)s%(node.lessee)s", false),
        ("'100%':100%%", true),
        ("not project_id:%(node.owner)s", false),
        ("not project_id:%(node.nothing)s", true),
        ("not rule:nothing", true),
        ("True:True", true),
        ("True:False", false),
        ("@ and not !", true),
    ] {
        assert_eq!(permits(check, &member(), &node), expected, "{check}");
    }
    let service = member().with_service_roles(["service", "admin"]);
    assert!(permits("service_roles:admin", &service, &node));
    let named = Credentials::new(["p", "None"]);
    assert!(permits("role:%(node.owner)s", &named, &node));
    assert!(permits("role:None", &named, &node));
}

#[test]
fn unknown_kinds_and_malformed_values_are_refused_by_the_name_of_the_rule() {
    for (check, problem, remedy) in [
        (
            "http://policy.example/%(x)s",
            "\"http\" is no known kind",
            "asks no other server",
        ),
        (
            "ROLE:admin",
            "\"ROLE\" is no known kind",
            "write role, in lower case",
        ),
        (
            "tenant:%(node.owner)s",
            "\"tenant\" is no known kind",
            "write project_id",
        ),
        ("node.owner:p", "no known kind", "project_id:%(node.owner)s"),
        (
            "is_admin:True",
            "no known kind",
            "use rule, role, a constant, or one of user_id, ",
        ),
        (
            "project_id:%(node.owner",
            "\"%(node.owner\" is no place",
            "write %(ATTRIBUTE)s",
        ),
        (
            "project_id:%(node.owner)d",
            "is no place",
            "a percent sign is %%",
        ),
        (
            "project_id:100%",
            "\"%\" is no place",
            "a percent sign is %%",
        ),
        (
            "role:admin or (@ and field:x)",
            "field:x: \"field\" is no known kind",
            "use rule",
        ),
        (
            "'a\\n':x",
            "its quote is not closed, or it has an escape",
            "without quotes",
        ),
    ] {
        let fault = of_check(check).unwrap_err();
        assert_eq!(fault.rule.as_deref(), Some("x"), "{check}");
        assert!(fault.problem.contains(problem), "{check}: {fault}");
        assert!(fault.remedy.contains(remedy), "{check}: {fault}");
    }
}

#[test]
fn a_decision_names_the_rule_and_the_check() {
    let policy = policy(
        r#"{"a": "rule:b or role:reader and project_id:%(node.owner)s and role:member", "b": "not rule:c", "c": "@"}"#,
    );
    let reader = Credentials::project("p", ["reader"]);
    let owned = PolicyTarget::node(Some("p"), None);
    for (caller, target, text) in [
        (&reader, &owned, "refused by rule a: role:member"),
        (
            &reader,
            &PolicyTarget::node(Some("q"), None),
            "refused by rule a: project_id:%(node.owner)s",
        ),
        (
            &Credentials::new([]),
            &owned,
            "refused by rule a: rule:b or role:reader and \
            project_id:%(node.owner)s and role:member",
        ),
        (
            &Credentials::project("p", ["reader", "member"]),
            &owned,
            "permitted by rule a: role:reader and project_id:%(node.owner)s and role:member",
        ),
    ] {
        assert_eq!(policy.decide("a", caller, target).to_string(), text);
    }
    let PolicyDecision::Refused(check) = policy.decide("b", &reader, &owned) else {
        panic!("rule b permits");
    };
    assert_eq!((check.rule(), check.within()), ("b", "b"));
    assert_eq!(check.check().unwrap().to_string(), "not rule:c");
    let unknown = policy.decide("nothing", &reader, &owned);
    assert_eq!(unknown.to_string(), "refused: there is no such rule");
    assert!(!unknown.is_permitted());
}

#[test]
fn a_check_of_another_rule_is_named_with_it() {
    let policy = policy(r#"{"a": "rule:b", "b": "role:reader and rule:c", "c": "role:admin"}"#);
    let reader = Credentials::project("p", ["reader"]);
    let refused = policy.decide("a", &reader, &PolicyTarget::none());
    assert_eq!(
        refused.to_string(),
        "refused by rule a: role:admin of rule c"
    );
    let debug = format!("{refused:?}");
    assert!(
        debug.contains("role:admin of rule c") && debug.len() < 100,
        "{debug}"
    );
}

#[test]
fn a_rule_is_for_tokens_of_its_scopes_whatever_its_check_says() {
    let open =
        policy(r#"{"baremetal:chassis:get": "", "baremetal:allocation:create_pre_rbac": ""}"#);
    let none = PolicyTarget::none();
    let project = persona("owner-admin").credentials;
    let system = persona("system-reader").credentials;
    let domain = Credentials::new(["admin"]).with(CallerAttribute::DomainId, "d");
    for (rule, caller, expected) in [
        ("baremetal:chassis:get", &system, true),
        ("baremetal:chassis:get", &project, false),
        ("baremetal:chassis:get", &domain, false),
        ("baremetal:node:list", &domain, false),
        ("baremetal:allocation:create_pre_rbac", &project, true),
        ("baremetal:allocation:create_pre_rbac", &system, false),
        ("baremetal:driver:ipa_lookup", &domain, true),
        ("is_admin", &domain, true),
    ] {
        let decision = open.decide(rule, caller, &none);
        assert_eq!(decision.is_permitted(), expected, "{rule}: {decision}");
    }
    let refused = open.decide("baremetal:chassis:get", &project, &none);
    let text = "refused: rule baremetal:chassis:get is not for tokens of a project";
    assert_eq!(refused.to_string(), text);
    assert!(matches!(
        refused,
        PolicyDecision::WrongScope {
            scope: TokenScope::Project,
            ..
        }
    ));
}

#[test]
fn a_rule_of_the_file_takes_the_place_of_the_default_as_a_whole() {
    let reader = persona("owner-reader").credentials;
    let own = PolicyTarget::node(Some("project-owner"), None);
    let get = "baremetal:node:get";
    assert!(policy("").decide(get, &reader, &own).is_permitted());
    let closed = policy(r#"{"baremetal:node:get": "role:admin"}"#);
    assert!(!closed.decide(get, &reader, &own).is_permitted());
    let id = closed.rule_id(get).unwrap();
    assert!(!closed.decide_by(id, &reader, &own).is_permitted());
    // A part that other rules refer to is replaced in all of them.
    let services = persona("elevated-service").credentials;
    let stranger = PolicyTarget::node(Some("another"), None);
    assert!(policy("").decide(get, &services, &stranger).is_permitted());
    let without = compiled(r#"{"service_role": "!"}"#).unwrap();
    assert!(!without.decide(get, &services, &stranger).is_permitted());
}
