//! Transitions of firewalls and their rules.

mod carry;
mod contents;
pub(crate) mod guests;
mod history;
pub(crate) mod release;
pub(crate) mod replace;
pub(crate) mod report;
mod rule_checks;
pub(crate) mod rules;
mod shares;

pub use rule_checks::check_rules;
