//! The reports of firewalls about their rules.

use std::collections::BTreeMap;

use proto_types::{AllocationId, MachineId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{FirewallRoutes, FirewallUpdate};

/// An object that a firewall's agent refused. None of its rules is in force there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRule {
    /// Controller and name of the object.
    pub object: String,
    /// Field of the object.
    pub field: String,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// The last report of a firewall's agent. It belongs to one allocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FirewallStatus {
    /// The key: the firewall.
    pub machine: MachineId,
    /// The allocation that reported.
    pub allocation: AllocationId,
    /// Raft term of the desired state that is in the kernel.
    pub applied_term: u64,
    /// Generation of the desired state that is in the kernel.
    pub applied_generation: u64,
    /// Time of the report.
    pub at: Timestamp,
    /// Revisions that are in the kernel, by key of the set.
    #[serde(default)]
    pub applied_sets: BTreeMap<String, u64>,
    /// Objects that the agent refused.
    #[serde(default)]
    pub refused_rules: Vec<RefusedRule>,
    /// Why the newest desired state is not in the kernel. `None` means that it is.
    #[serde(default)]
    pub error: Option<String>,
    /// Version of the agent. `None` means that it is too old to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The distance of its routes. `None` means that the agent has not reported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<FirewallRoutes>,
    /// Self-update of the agent. `None` means that it has not reported any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<FirewallUpdate>,
}
