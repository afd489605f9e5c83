//! Random check strings and files.

use control_oslo::{CheckExpression, Credentials, OsloPolicy, PolicyFile, PolicyTarget, ironic};
use proptest::prelude::*;

/// A policy of one rule `x` alone.
fn alone(check: &str) -> OsloPolicy {
    let file = serde_json::json!({ "x": check }).to_string();
    OsloPolicy::new(&[], &PolicyFile::parse(&file).unwrap()).unwrap()
}

/// Checks with every kind of side, that compile.
fn check() -> impl Strategy<Value = CheckExpression> {
    let kinds = prop_oneof![
        Just("role"),
        Just("rule"),
        Just("roles"),
        Just("project_id"),
        Just("system_scope"),
        Just("'x'"),
        Just("True"),
        Just("12"),
    ];
    let values = prop_oneof![
        Just("admin"),
        Just("all"),
        Just("is_admin"),
        Just("None"),
        Just("%(node.owner)s"),
        Just("%(project_id)s"),
        Just("a%(node.lessee)s-%%"),
        Just("x:y(z"),
    ];
    let simple = (kinds, values).prop_map(|(kind, value)| format!("{kind}:{value}"));
    let words = prop_oneof![4 => simple, 1 => Just("@".to_owned()), 1 => Just("!".to_owned())];
    words.prop_map(|word| word.parse().unwrap())
}

/// Trees of the shape that parsing makes: joints have two parts at least.
fn expression() -> impl Strategy<Value = CheckExpression> {
    check().prop_recursive(5, 40, 4, |inner| {
        let parts = prop::collection::vec(inner.clone(), 2..5);
        prop_oneof![
            inner.prop_map(|part| CheckExpression::Not(Box::new(part))),
            parts.clone().prop_map(CheckExpression::All),
            parts.prop_map(CheckExpression::Any),
        ]
    })
}

/// The answer by the definition, without the compiler.
fn holds(expression: &CheckExpression, leaf: &impl Fn(&str) -> bool) -> bool {
    match expression {
        CheckExpression::Always => true,
        CheckExpression::Never => false,
        CheckExpression::Check(check) => leaf(&check.to_string()),
        CheckExpression::Not(inner) => !holds(inner, leaf),
        CheckExpression::All(parts) => parts.iter().all(|part| holds(part, leaf)),
        CheckExpression::Any(parts) => parts.iter().any(|part| holds(part, leaf)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_check_string_reads_as_itself(expression in expression()) {
        let text = expression.to_string();
        prop_assert_eq!(text.parse(), Ok(expression), "{}", text);
    }

    #[test]
    fn any_text_that_is_read_prints_to_the_same(text in "(\\(|\\)|not |NOT |and | or |@|!|a:b|'x':|%|%\\(x\\)s| |\\PC){0,24}") {
        if let Ok(read) = text.parse::<CheckExpression>() {
            let printed = read.to_string();
            prop_assert_eq!(printed.parse(), Ok(read), "{:?} {:?}", text, printed);
        }
    }

    #[test]
    fn a_decision_is_the_value_of_its_expression(expression in expression(), roles in prop::sample::subsequence(vec!["admin", "member"], 0..=2), owner in prop::option::of("[pq]")) {
        let caller = Credentials::project("p", roles);
        let target = PolicyTarget::node(owner.as_deref(), None);
        let policy = alone(&expression.to_string());
        let leaf = |check: &str| alone(check).decide("x", &caller, &target).is_permitted();
        let decision = policy.decide("x", &caller, &target);
        prop_assert_eq!(decision.is_permitted(), holds(&expression, &leaf), "{}", expression);
        let text = decision.to_string();
        prop_assert!(text.contains("by rule x: "), "{}", text);
    }

    #[test]
    fn any_file_is_read_or_refused(text in "([a-c]|'|\"|:|: |\\n|- |\\[|\\]|\\{|\\}|,|role:x|@|!|&a|\\*a|#|\\PC){0,40}") {
        if let Ok(file) = PolicyFile::parse(&text)
            && let Ok(policy) = ironic::policy(&file)
        {
            prop_assert!(policy.rules().len() >= 133);
        }
    }
}
