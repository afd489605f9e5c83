//! Reports of firewalls.

use std::collections::BTreeMap;

use proto_types::{AllocationId, MachineId};
use serde::{Deserialize, Serialize};

use crate::firewall::entity::{FirewallRoutes, FirewallUpdate, RefusedRule};

/// See [`Op::ReportFirewall`](crate::Op::ReportFirewall).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportFirewall {
    /// The firewall.
    pub machine: MachineId,
    /// The allocation that the caller's certificate was made for.
    pub allocation: AllocationId,
    /// Raft term of the desired state that is in the kernel.
    pub applied_term: u64,
    /// Generation of the desired state that is in the kernel.
    pub applied_generation: u64,
    /// Revisions that are in the kernel, by key of the set.
    pub applied_sets: BTreeMap<String, u64>,
    /// Objects that the agent refused.
    pub refused_rules: Vec<RefusedRule>,
    /// Why the newest desired state is not in the kernel. `None` means that it is.
    pub error: Option<String>,
    /// Version of the agent. `None` means that it is too old to say.
    #[serde(default)]
    pub agent_version: Option<String>,
    /// The distance of its routes. `None` means that the agent has not read one.
    #[serde(default)]
    pub routes: Option<FirewallRoutes>,
    /// Self-update of the agent. `None` means that it has not said anything of it.
    #[serde(default)]
    pub update: Option<FirewallUpdate>,
}
