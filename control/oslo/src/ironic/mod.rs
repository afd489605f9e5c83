//! The rules of Ironic 39.0.0, and policies over them.
//!
//! The tables are facts of Ironic's public protocol: names of rules, check strings, scopes, and the
//! calls that each decides. A test compares their decisions with those of oslo.policy 6.0.1
//! (`control/oslo/tests/oslo/oracle.rs`).

mod checks;
mod node_action_rules;
mod node_rules;
mod part_rules;
mod port_rules;
mod project_rules;
mod shapes;
mod site_rules;

use crate::fault::PolicyFault;
use crate::file::PolicyFile;
use crate::policy::OsloPolicy;
use crate::registered::{RegisteredRule, RuleSubject};

/// Release of Ironic whose rules these are.
pub const RELEASE: &str = "39.0.0";

const TABLES: [&[RegisteredRule]; 6] = [
    part_rules::RULES,
    node_rules::RULES,
    node_action_rules::RULES,
    port_rules::RULES,
    project_rules::RULES,
    site_rules::RULES,
];

/// Rules that hold every other one of the same object back: without them the object is not found.
const GATES: [(RuleSubject, &str); 2] = [
    (RuleSubject::Node, "baremetal:node:get"),
    (RuleSubject::Allocation, "baremetal:allocation:get"),
];

/// Rules that releases before scopes used, which a later release removes.
const FOR_REMOVAL: [&str; 7] = [
    "admin_api",
    "is_member",
    "is_observer",
    "is_admin",
    "is_node_owner",
    "is_node_lessee",
    "is_allocation_owner",
];

/// All rules of Ironic.
#[must_use]
pub fn rules() -> Vec<&'static RegisteredRule> {
    TABLES.into_iter().flatten().collect()
}

/// The rules of Ironic with those of a file in their place; an empty file leaves the defaults.
///
/// # Errors
/// Those of [`OsloPolicy::new`].
pub fn policy(file: &PolicyFile) -> Result<OsloPolicy, PolicyFault> {
    OsloPolicy::new(&rules(), file)
}

/// The rule by which a caller sees an object of this kind at all. Calls on an object need it beside
/// their own rule, and are answered with 404 without it.
#[must_use]
pub fn gate(subject: RuleSubject) -> Option<&'static str> {
    let gate = GATES.into_iter().find(|(gated, _)| *gated == subject);
    gate.map(|(_, rule)| rule)
}

/// `true` for a rule that a later release removes.
#[must_use]
pub fn is_for_removal(rule: &str) -> bool {
    FOR_REMOVAL.contains(&rule)
}
