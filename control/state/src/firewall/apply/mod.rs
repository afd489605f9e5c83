//! Transitions of firewall rules.

mod history;
pub(crate) mod report;
mod rule_checks;
pub(crate) mod rules;
