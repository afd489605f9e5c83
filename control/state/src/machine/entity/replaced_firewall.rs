//! The firewall whose place another one takes.

use std::collections::BTreeMap;

use proto_firewall::RuleOwner;
use proto_types::{AllocationId, MachineId, Timestamp};
use serde::{Deserialize, Serialize};

/// A firewall of the same project that an allocation takes the place of. It belongs to the
/// replacement, so that it ends with it, and its seniority outlives the firewall that is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedFirewall {
    /// The firewall that is replaced.
    pub machine: MachineId,
    /// Its allocation: a later one of the machine is another firewall.
    pub allocation: AllocationId,
    /// Its seniority among the firewalls of the project, which the replacement gets.
    pub since: Timestamp,
    /// Time at which its place was taken. `None` means not yet: the replacement is a standby.
    #[serde(default)]
    pub taken_at: Option<Timestamp>,
    /// The sets of rules that are attached to both, as they were last compared, by their owner.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub carried: BTreeMap<RuleOwner, CarriedRules>,
}

/// A set of rules of a firewall that is replaced, beside that of its replacement, as they were when the
/// two were last compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedRules {
    /// Number of the revision of the other firewall's set. 0 means that it had none.
    pub original: u64,
    /// Number of the revision of the own set that is its copy. 0 means that there is none: the other
    /// firewall had no set, or the replacement has one of its own.
    pub copy: u64,
    /// Number of the revision of the own set, a copy or not. `None` means that the replacement did not
    /// have the place then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<u64>,
}
