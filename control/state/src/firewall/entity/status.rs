//! The reports of firewalls about their rules.

use std::collections::BTreeMap;

use proto_types::{AllocationId, MachineId, Timestamp};
use serde::{Deserialize, Serialize};

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

/// The distance of a firewall's routes, as its agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRoutes {
    /// The distance that the agent wants: control's, or the longest while its rules are not in
    /// force.
    pub wanted: u32,
    /// The distance that the routing daemon has, as the agent read it. `None` means that it could
    /// not be read, or is no distance.
    #[serde(default)]
    pub observed: Option<u32>,
    /// Why nothing was observed. `None` means that it was.
    #[serde(default)]
    pub error: Option<String>,
}

/// Self-update of a firewall's agent, as the agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallUpdate {
    /// The agent's word for its phase.
    pub phase: String,
    /// The version that its source names. `None` means that it names none.
    #[serde(default)]
    pub wanted: Option<String>,
    /// The rule that a release breaks, or another reason. `None` means that there is none.
    #[serde(default)]
    pub error: Option<String>,
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
