//! The objects in which two contents differ.

use std::collections::BTreeMap;

use anyhow::Result;
use prost::Message;
use proto_public::metalmesh::admin::v1::{FirewallRule, FirewallRuleContent};
use serde_json::{Value, json};

/// The objects of a content as JSON, by list and name.
pub(super) fn objects(content: &FirewallRuleContent) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let firewall = content.firewall.clone().unwrap_or_default();
    let cwnp = content.cwnp.clone().unwrap_or_default();
    rules(&mut found, "firewall rules", &firewall.rules)?;
    rules(&mut found, "cwnp egress", &cwnp.egress)?;
    rules(&mut found, "cwnp ingress", &cwnp.ingress)?;
    for service in &content.service {
        let namespace = service.namespace.as_deref().unwrap_or("default");
        let name = format!("service {namespace}/{}", service.name);
        found.insert(name, text("FirewallServiceRule", service)?);
    }
    for (index, limit) in firewall.rate_limits.iter().enumerate() {
        let name = format!("firewall rateLimits[{index}]");
        found.insert(name, text("FirewallRateLimit", limit)?);
    }
    for (index, egress) in firewall.egress_rules.iter().enumerate() {
        let name = format!("firewall egressRules[{index}]");
        found.insert(name, text("FirewallEgressRule", egress)?);
    }
    if let Some(allowed) = &firewall.allowed_networks {
        let text = text("FirewallAllowedNetworks", allowed)?;
        found.insert("firewall allowedNetworks".to_owned(), text);
    }
    if firewall.log_accepted_connections {
        let name = "firewall logAcceptedConnections".to_owned();
        found.insert(name, "true".to_owned());
    }
    Ok(found)
}

fn rules(found: &mut BTreeMap<String, String>, list: &str, rules: &[FirewallRule]) -> Result<()> {
    for (index, rule) in rules.iter().enumerate() {
        let mut rule = rule.clone();
        if rule.name.is_empty() {
            rule.name = format!("rule-{index}");
        }
        let mut shown = text("FirewallRule", &rule)?;
        if list == "firewall rules" {
            // The first that matches decides: a rule that moved is another one.
            shown = format!("{shown} at {}", index + 1);
        }
        found.insert(format!("{list}/{}", rule.name), shown);
    }
    Ok(())
}

/// A message of the package as JSON, without the fields that it does not have.
pub(super) fn text(name: &str, message: &impl Message) -> Result<String> {
    let name = format!("metalmesh.admin.v1.{name}");
    let descriptor = proto_public::message(&name);
    let descriptor = descriptor.ok_or_else(|| anyhow::anyhow!("unknown message type"))?;
    let decoded = proto_public::json::decode(&descriptor, &message.encode_to_vec())?;
    Ok(String::from_utf8(proto_public::json::print(&decoded)?)?)
}

/// A difference between an old and a new content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectDifference {
    pub(super) object: String,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

impl ObjectDifference {
    /// Lines for people: `-` goes, `+` comes.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |mark, text: &String| format!("{mark} {} {text}", self.object);
        let old = self.old.iter().map(|text| line('-', text));
        let new = self.new.iter().map(|text| line('+', text));
        old.chain(new).collect()
    }

    pub(super) fn json(&self) -> Value {
        json!({ "object": self.object, "old": self.old, "new": self.new })
    }
}

/// The objects that differ, by list and name.
pub(super) fn between(
    old: Option<&FirewallRuleContent>,
    new: &FirewallRuleContent,
) -> Result<Vec<ObjectDifference>> {
    let mut old = match old {
        Some(old) => objects(old)?,
        None => BTreeMap::new(),
    };
    let mut all = Vec::new();
    for (object, text) in objects(new)? {
        let before = old.remove(&object);
        if before.as_ref() != Some(&text) {
            all.push(ObjectDifference {
                object,
                old: before,
                new: Some(text),
            });
        }
    }
    all.extend(old.into_iter().map(|(object, text)| ObjectDifference {
        object,
        old: Some(text),
        new: None,
    }));
    all.sort_by(|a, b| a.object.cmp(&b.object));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proto_public::metalmesh::admin::v1::FirewallPolicyPart;

    use super::*;

    fn egress(names: &[&str], log: bool) -> FirewallRuleContent {
        let rule = |name: &&str| FirewallRule {
            name: (*name).to_owned(),
            log,
            ..FirewallRule::default()
        };
        FirewallRuleContent {
            cwnp: Some(FirewallPolicyPart {
                egress: names.iter().map(rule).collect(),
                ingress: Vec::new(),
            }),
            ..FirewallRuleContent::default()
        }
    }

    #[test]
    fn only_what_differs_is_named() {
        let old = egress(&["a", "b"], false);
        let found = between(Some(&old), &egress(&["b", "c"], false)).unwrap();
        let lines: Vec<String> = found.iter().flat_map(ObjectDifference::lines).collect();
        assert_eq!(
            lines,
            [
                "- cwnp egress/a {\"name\":\"a\"}",
                "+ cwnp egress/c {\"name\":\"c\"}"
            ]
        );
        let changed = between(Some(&old), &egress(&["a", "b"], true)).unwrap();
        assert_eq!(changed.len(), 2);
        assert_eq!(changed[0].lines().len(), 2);
        assert!(between(Some(&old), &old).unwrap().is_empty());
        assert_eq!(between(None, &old).unwrap().len(), 2);
    }
}
