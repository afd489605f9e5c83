//! Hosts of pools: machines that claims get.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{ClaimId, MachineId, PoolId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::WipeLevel;
use crate::meta::{Labels, Meta};
use crate::pool::entity::{DeployPolicy, HostReservation, HostTaint, PowerHold, SeenMachine};

/// The one truth about who has a host. A claim only repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBinding {
    /// The claim.
    pub claim: ClaimId,
    /// Its project.
    pub project: ProjectId,
    /// Time of the binding.
    pub bound_at: Timestamp,
    /// Claims of a project with the same text are spread over racks. Empty means all of them.
    #[serde(default)]
    pub spread: String,
    /// Time at which the policies ceased to admit the project. `None` means that they admit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// A host of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolHost {
    /// The key: the machine.
    pub machine: MachineId,
    /// Labels, times and generation. The pool says which of the labels projects see.
    pub meta: Meta,
    /// The pool.
    pub pool: PoolId,
    /// Texts for people and programs, by which nothing is decided. The pool says which of them claims
    /// repeat.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    /// Taints.
    #[serde(default)]
    pub taints: BTreeSet<HostTaint>,
    /// Failure domain, as projects see it. Empty means none.
    #[serde(default)]
    pub domain: String,
    /// Policies that narrow those of the pool for this host. Empty narrows nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<DeployPolicy>,
    /// Why the host gets no new claim. `None` means that it may get one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<String>,
    /// Holds of power by `ACTOR/KEY`. They stay when the claim goes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub holds: BTreeMap<String, PowerHold>,
    /// Number of the machine's last binding, from 1, also in an earlier pool. 0 means that it was
    /// never bound.
    #[serde(default)]
    pub epoch: u64,
    /// Number of the binding after which the host was verified to be clean: disks wiped, at least as
    /// the pool asks. `None` means that it is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_epoch: Option<u64>,
    /// Strength of the last wipe if it is less than the pool asks for: only claims of the project that
    /// had the host, with its key, may get it so. `None` means that it is not less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub light_wipe: Option<WipeLevel>,
    /// Why nobody gets the host before an administrator has it wiped again. `None` means that it is
    /// not in quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<String>,
    /// The claim that has it. `None` means that nobody has it.
    #[serde(default)]
    pub binding: Option<HostBinding>,
    /// The project that gets it back. `None` means that everybody may get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<HostReservation>,
    /// Number of installations: of equal hosts the one with the fewest is chosen.
    #[serde(default)]
    pub provisions: u32,
    /// The machine's partition, size and rack, and whether it could be allocated, repeated here for
    /// the index: it finds free hosts without a look at each machine.
    #[serde(default)]
    pub seen: SeenMachine,
}

impl PoolHost {
    /// `true` if a claim could get the host, were it not reserved.
    pub(crate) fn is_open(&self) -> bool {
        self.binding.is_none()
            && self.cordon.is_none()
            && self.is_clean()
            && self.seen.is_ready
            && self.seen.partition.is_some()
            && self.seen.size.is_some()
    }

    /// `true` if any claim could get the host.
    pub(crate) fn is_free(&self) -> bool {
        self.is_open() && self.reserved.is_none() && self.light_wipe.is_none()
    }

    /// `true` if nothing is left on it that those must not see that may get it.
    pub fn is_clean(&self) -> bool {
        self.quarantine.is_none() && self.clean_epoch == Some(self.epoch)
    }
}
