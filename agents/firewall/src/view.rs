//! Rules as output shows them.

use serde::Serialize;

use crate::rule::{Action, Direction, Rule};

/// A rule for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleView {
    /// Controller of the object.
    pub controller: &'static str,
    /// Name of the object.
    pub object: String,
    /// Number of the rule in the object.
    pub rule: usize,
    /// Effect.
    pub action: Action,
    /// Flows that the rule is for.
    pub direction: Direction,
    /// Source prefixes.
    pub from: Vec<String>,
    /// Destination prefixes.
    pub to: Vec<String>,
    /// Names whose resolved addresses are the destinations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Protocols and ports.
    pub protocols: Vec<String>,
    /// `true` if packets that match are logged.
    pub log: bool,
    /// Name of the counter.
    pub counter: String,
}

impl From<&Rule> for RuleView {
    fn from(rule: &Rule) -> Self {
        let texts = |nets: &[ipnet::IpNet]| nets.iter().map(ToString::to_string).collect();
        Self {
            controller: rule.id.controller.name(),
            object: rule.id.object.clone(),
            rule: rule.id.rule,
            action: rule.action,
            direction: rule.direction,
            from: texts(&rule.sources),
            to: texts(&rule.destinations),
            names: rule.names.iter().map(ToString::to_string).collect(),
            protocols: rule.protocols.iter().map(ToString::to_string).collect(),
            log: rule.log,
            counter: rule.id.counter(),
        }
    }
}

impl RuleView {
    /// The rule as one line.
    #[must_use]
    pub fn line(&self) -> String {
        let short = |list: &[String]| match list {
            [first, _, _, _, ..] => format!("{first} and {} more", list.len() - 1),
            few => few.join(","),
        };
        format!(
            "{} {} {} from {} to {} protocol {}{}",
            self.counter,
            self.direction.name(),
            self.action.name(),
            short(&self.from),
            short(if self.names.is_empty() {
                &self.to
            } else {
                &self.names
            }),
            short(&self.protocols),
            if self.log { " log" } else { "" },
        )
    }
}
