//! Firewall rules as their owners write them.
//!
//! [`RuleContent`] is the content of one set of rules: what a file of the firewall agent says under
//! `sources.static`, without the networks. [`check()`] is the one validator of control and the
//! command line; it returns every object that is wrong. The firewall agent reads single objects by
//! the same functions, [`checked_policy`] and its neighbours. [`explain`] names the rule that decides
//! about a new flow.
//!
//! Invariants:
//! - no I/O, no clock: checks and decisions are functions of their arguments;
//! - an object that passes [`check()`] has canonical prefixes, real ports and a name that fits a
//!   counter of the kernel; the firewall agent checks it again, and has the last word;
//! - a rule that is wrong decides about nothing;
//! - the work of a check grows with the text alone: it counts prefixes and entries from ranges of
//!   addresses, and [`check()`] makes none; what is made of them is bounded for each field and set.

mod action;
mod address_block;
mod address_range;
mod allowed_networks;
mod budget;
mod check;
mod content;
mod decision;
mod matched;
mod network_objects;
pub mod parts;
mod port_spec;
mod prefix_count;
pub mod prefixes;
mod printable;
mod protocol_match;
mod ranged_rule;
mod rule_spec;
mod scope;
mod service_spec;
mod share;
mod violation;

pub use action::{Action, Direction};
pub use address_block::{AddressBlock, NamePattern};
pub use allowed_networks::AllowedNetworks;
pub use budget::{
    ENTRIES_MAX, ENTRIES_TOTAL_MAX, NAMES_TOTAL_MAX, PREFIXES_TOTAL_MAX, RuleBudget, entry_count,
};
pub use check::{
    check, checked, checked_after, checked_operator_rule, checked_policy, checked_service,
    rule_name, service_name, set_size,
};
pub use content::RuleContent;
pub use decision::{Decision, Flow, PlacedRules, explain};
pub use matched::{CheckedRule, RuleList};
pub use network_objects::{EgressAddresses, RateLimit};
pub use parts::NAME_LEN_MAX;
pub use port_spec::PortSpec;
pub use printable::printable;
pub use protocol_match::{ProtocolMatch, number as protocol_number, protocol_name};
pub use rule_spec::RuleSpec;
pub use scope::{RuleOwner, RuleScope};
pub use service_spec::ServiceSpec;
pub use share::{RuleShare, SetSize};
pub use violation::Violation;
