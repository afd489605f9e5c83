//! Hosts of pools.

use std::collections::BTreeSet;

use proto_types::{MachineId, PoolId};
use serde::{Deserialize, Serialize};

use crate::meta::Labels;
use crate::pool::entity::{DeployPolicy, HostTaint};

/// See [`Op::SetPoolHost`](crate::Op::SetPoolHost).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetPoolHost {
    /// The machine.
    pub machine: MachineId,
    /// Generation that the host must have; 0 means that the machine must be none. `None` means any.
    #[serde(default)]
    pub expected: Option<u64>,
    /// The pool. A host moves to another pool only while nobody has it.
    pub pool: PoolId,
    /// All labels.
    #[serde(default)]
    pub labels: Labels,
    /// All annotations: texts for people and programs, by which nothing is decided.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    /// All taints.
    #[serde(default)]
    pub taints: BTreeSet<HostTaint>,
    /// Failure domain. Empty means none.
    #[serde(default)]
    pub domain: String,
    /// Policies that narrow those of the pool. Empty narrows nothing.
    #[serde(default)]
    pub only: Vec<DeployPolicy>,
    /// Why the host gets no new claim. `None` means that it may get one.
    #[serde(default)]
    pub cordon: Option<String>,
}
