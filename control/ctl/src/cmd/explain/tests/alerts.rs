//! The alert rules of the documentation are complete, and name runbooks that exist.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::super::{find, page};

const RULES: &str = include_str!("../../../../../../docs/operations/alerts.yml");
const GUIDE: &str = include_str!("../../../../../../docs/operations/service-levels.md");
/// How texts name an alert.
const NAMED: &str = "the alert `";

/// The rules of all groups.
fn rules() -> Vec<Value> {
    let file: Value = serde_norway::from_str(RULES).unwrap();
    let groups = file["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    rules.cloned().collect()
}

/// A text of a rule.
fn text<'a>(rule: &'a Value, path: &str) -> &'a str {
    let found = rule.pointer(path).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no {path}: {rule}"))
}

/// Names of the alerts.
fn alerts(rules: &[Value]) -> BTreeSet<&str> {
    let names = rules.iter().filter_map(|rule| rule["alert"].as_str());
    names.collect()
}

#[test]
fn every_alert_says_how_urgent_it_is_and_what_to_do() {
    let rules = rules();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all = page::explanations();
    let mut names = BTreeSet::new();
    for rule in rules.iter().filter(|rule| rule["alert"].is_string()) {
        let name = text(rule, "/alert");
        assert!(names.insert(name), "{name} is there twice");
        let severity = text(rule, "/labels/severity");
        assert!(["page", "ticket"].contains(&severity), "{name}: {severity}");
        let summary = text(rule, "/annotations/summary");
        assert!(summary.len() > 20, "{name}: {summary}");
        let runbook = text(rule, "/annotations/runbook");
        match runbook.strip_prefix("metalmesh explain ") {
            Some(code) => assert_eq!(find(&all, code).unwrap().code, code, "{name}"),
            None => assert!(root.join(runbook).is_file(), "{name}: {runbook}"),
        }
        assert!(
            GUIDE.contains(&format!("| `{name}` |")),
            "{name} is not in the guide"
        );
    }
    let rows = GUIDE.lines().filter(|line| line.starts_with("| `"));
    let listed: BTreeSet<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(listed, names, "alerts in the guide");
}

#[test]
fn every_recorded_series_is_used_and_every_used_one_is_recorded() {
    let rules = rules();
    let recorded = rules.iter().filter_map(|rule| rule["record"].as_str());
    let recorded: BTreeSet<&str> = recorded.collect();
    let exprs = rules.iter().map(|rule| text(rule, "/expr"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = exprs.flat_map(|expr| expr.split(move |c| !is_part(c)));
    let used: BTreeSet<&str> = words
        .filter(|word| word.starts_with("metalmesh:"))
        .collect();
    assert_eq!(used, recorded);
}

#[test]
fn alerts_that_runbooks_name_exist() {
    let rules = rules();
    let alerts = alerts(&rules);
    let mut count = 0;
    for found in page::explanations() {
        for named in found.text.split(NAMED).skip(1) {
            let name = named.split('`').next().unwrap();
            assert!(alerts.contains(name), "{}: {name}", found.code);
            count += 1;
        }
    }
    assert!(count > 4, "{count}");
}
