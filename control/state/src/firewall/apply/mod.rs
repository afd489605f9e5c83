//! Transitions of firewall rules.

mod history;
pub(crate) mod report;
pub(crate) mod rules;
mod rule_checks;
