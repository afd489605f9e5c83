//! The command that creates a node allocation.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{MachineId, NodeAllocationId, ProjectId, ResourceClass, TraitName};
use serde::{Deserialize, Serialize};

/// See [`Op::CreateNodeAllocation`](crate::Op::CreateNodeAllocation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateNodeAllocation {
    /// Its id.
    pub id: NodeAllocationId,
    /// Name, unique among those of the owner. `None` means that it has none.
    #[serde(default)]
    pub name: Option<String>,
    /// The project that it is bound to. `None` means that it is an administrator's, and gets a machine
    /// of the site.
    #[serde(default)]
    pub owner: Option<ProjectId>,
    /// Resource class. `None` is for a machine that is in use already, whose class it takes.
    #[serde(default)]
    pub resource_class: Option<ResourceClass>,
    /// Traits that the machine must have.
    #[serde(default)]
    pub traits: BTreeSet<TraitName>,
    /// Machines to choose from. Empty means all.
    #[serde(default)]
    pub candidates: BTreeSet<MachineId>,
    /// A machine that is in use already, for which the node allocation is made afterwards. `None` means
    /// that a free machine is chosen.
    #[serde(default)]
    pub backfill: Option<MachineId>,
    /// Additional fields of the client.
    #[serde(default)]
    pub extra: BTreeMap<String, String>,
    /// Seed that chooses among equally good machines. Random, made by the proposer, so that all
    /// replicas choose the same machine.
    pub seed: u64,
}
