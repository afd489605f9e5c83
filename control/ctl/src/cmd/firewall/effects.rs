//! The effects that rules would have on the firewalls that run.

use anyhow::{Result, bail};
use proto_public::metalmesh::admin::v1::FirewallRulesEffect;
use serde_json::Value;

use crate::output::message_json;

/// The effects as JSON.
pub(super) fn json(effects: &[FirewallRulesEffect]) -> Result<Vec<Value>> {
    let name = "metalmesh.admin.v1.FirewallRulesEffect";
    let all = effects.iter().map(|effect| message_json(name, effect));
    all.collect()
}

/// Prints the effects, for people.
pub(super) fn print(effects: &[FirewallRulesEffect]) {
    if effects.is_empty() {
        outln!("no firewall has these rules");
    }
    effects
        .iter()
        .flat_map(lines)
        .for_each(|line| outln!("{line}"));
}

/// Fails if a firewall did not compare the rules: they are valid for control, but nobody knows what
/// that firewall makes of them.
pub(super) fn check(effects: &[FirewallRulesEffect]) -> Result<()> {
    let failed = effects.iter().filter(|effect| !effect.error.is_empty());
    match failed.count() {
        0 => Ok(()),
        count => bail!(
            "control accepts the rules, but {count} of {} firewalls did not compare them",
            effects.len()
        ),
    }
}

fn lines(effect: &FirewallRulesEffect) -> Vec<String> {
    let name = match effect.hostname.is_empty() {
        true => effect.firewall.clone(),
        false => format!("{} ({})", effect.firewall, effect.hostname),
    };
    if !effect.error.is_empty() {
        return vec![format!("firewall {name}: not compared: {}", effect.error)];
    }
    let mut all = vec![format!(
        "firewall {name}: {} rules come, {} go, {} change; {} would be in force, with {} entries",
        effect.added, effect.removed, effect.changed, effect.rules, effect.entries
    )];
    if !effect.parts.is_empty() {
        all.push(format!("also changes: {}", effect.parts.join(", ")));
    }
    all.extend(effect.refused.iter().map(|refused| {
        let (object, field) = (&refused.object, &refused.field);
        format!(
            "would refuse: {object}: {field}: {}; {}",
            refused.problem, refused.remedy
        )
    }));
    all
}

#[cfg(test)]
mod tests {
    use proto_public::metalmesh::admin::v1::FirewallRefusedRule;

    use super::*;

    #[test]
    fn a_firewall_that_did_not_answer_is_an_error() {
        let compared = FirewallRulesEffect {
            firewall: "f1".into(),
            hostname: "fw".into(),
            added: 2,
            rules: 5,
            entries: 9,
            parts: vec!["rate limits".into()],
            refused: vec![FirewallRefusedRule {
                object: "cwnp egress/web".into(),
                field: "ports".into(),
                problem: "too many".into(),
                remedy: "use fewer".into(),
            }],
            ..FirewallRulesEffect::default()
        };
        assert_eq!(
            lines(&compared),
            [
                "firewall f1 (fw): 2 rules come, 0 go, 0 change; 5 would be in force, with 9 entries",
                "also changes: rate limits",
                "would refuse: cwnp egress/web: ports: too many; use fewer",
            ]
        );
        let silent = FirewallRulesEffect {
            firewall: "f2".into(),
            error: "it has no session with control".into(),
            ..FirewallRulesEffect::default()
        };
        let line = "firewall f2: not compared: it has no session with control";
        assert_eq!(lines(&silent), [line]);
        assert!(check(std::slice::from_ref(&compared)).is_ok());
        let error = check(&[compared, silent]).unwrap_err().to_string();
        assert!(error.contains("1 of 2 firewalls"), "{error}");
    }
}
