//! A node allocation.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{MachineId, NodeAllocationId, ProjectId, ResourceClass, TraitName};
use serde::{Deserialize, Serialize};

use crate::machine::entity::MachinePool;
use crate::meta::Meta;

/// Most node allocations of a project, and of administrators together; one more is refused. Those that
/// found no machine count too.
pub const NODE_ALLOCATIONS_MAX: usize = 10_000;
/// Most additional fields of a node allocation; more are refused.
pub const EXTRA_MAX: usize = 64;
/// Most bytes of the additional fields of a node allocation, together; more are refused.
pub const EXTRA_BYTES_MAX: usize = 64 * 1024;
/// Longest name of a node allocation, characters; a longer one is refused.
pub const NODE_ALLOCATION_NAME_MAX: usize = 255;

/// State of a node allocation. It is decided by the command that creates it, once and for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeAllocationState {
    /// It holds a machine.
    Active,
    /// No machine fitted; `last_error` has the reason.
    Error,
}

/// A machine that is held for somebody, by what it is and not by which it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAllocation {
    /// The key.
    pub id: NodeAllocationId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Name, unique among those of its owner. `None` means that it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The project that it is bound to: it gets machines that this project owns or leases, and no
    /// others. `None` means an administrator's, which gets machines of the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ProjectId>,
    /// Resource class of the machine, as the request or the machine wrote it.
    pub resource_class: ResourceClass,
    /// Traits that the machine must have.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub traits: BTreeSet<TraitName>,
    /// Machines among which it chose. Empty means all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub candidates: BTreeSet<MachineId>,
    /// Its state.
    pub state: NodeAllocationState,
    /// The machine that it holds. `None` in state `Error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// The reason of the state `Error`; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    /// Additional fields of the client, at most [`EXTRA_MAX`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, String>,
}

impl NodeAllocation {
    /// The machines that it may choose from, by whose they are.
    pub fn pool(&self) -> MachinePool {
        self.owner.map_or(MachinePool::Shared, MachinePool::Of)
    }
}

impl NodeAllocationState {
    /// Name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Error => "error",
        }
    }
}
