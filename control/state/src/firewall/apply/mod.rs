//! Transitions of firewall rules.

mod history;
pub(crate) mod replace;
pub(crate) mod report;
mod rule_checks;
pub(crate) mod rules;
mod shares;

pub use rule_checks::check_rules;
