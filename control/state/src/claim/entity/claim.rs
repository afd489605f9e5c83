//! Claims.

use std::collections::BTreeMap;

use proto_types::{AllocationId, ClaimId, MachineId, PoolId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::claim::entity::{
    ClaimCondition, ClaimMetadata, ClaimNote, ClaimPower, ClaimQueue, ClaimSelector, ClaimSpec,
    ClaimState, NOTES_KEPT_MAX, RebootRecord,
};
use crate::meta::Meta;
use crate::pool::entity::PowerHold;

/// Most claims of a project; a further one is refused.
pub const CLAIMS_PER_PROJECT_MAX: usize = 1_000;
/// Most ways to wait of a project: its waiting claims that ask for the same hosts count as one. A
/// claim that would be a further one is refused.
pub const CLASSES_PER_PROJECT_MAX: usize = 32;
/// Life of the record of a claim that is over, milliseconds: a day.
pub const CLAIM_KEPT_MS: u64 = 24 * 3_600_000;

/// The host of a claim, repeated from the host's own binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimBinding {
    /// The machine. Projects are not shown it.
    pub machine: MachineId,
    /// Its pool.
    pub pool: PoolId,
    /// Number of the host's binding: orders of an earlier one are not carried out.
    pub epoch: u64,
    /// Time of the binding.
    pub bound_at: Timestamp,
    /// The selector that the host was chosen by.
    #[serde(default)]
    pub selector: ClaimSelector,
    /// Its allocation. `None` means that nothing is installed.
    #[serde(default)]
    pub allocation: Option<AllocationId>,
}

/// Why a step for the claim failed, and when it is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimTrouble {
    /// One word for programs: the name of the error.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// Time of the next attempt. `None` means that only a change of the claim helps.
    #[serde(default)]
    pub retry_at: Option<Timestamp>,
}

/// A claim of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The key.
    pub id: ClaimId,
    /// Labels, times and generation of the intent.
    pub meta: Meta,
    /// The project.
    pub project: ProjectId,
    /// The client's key: unique in the project while the claim is not over.
    pub name: String,
    /// Login of the caller that made it.
    pub created_by: String,
    /// The intent.
    pub spec: ClaimSpec,
    /// The state.
    #[serde(default)]
    pub state: ClaimState,
    /// Time at which it entered the state.
    pub since: Timestamp,
    /// Generation of the intent that control has acted on.
    #[serde(default)]
    pub observed_generation: u64,
    /// Its place in the queue.
    pub queue: ClaimQueue,
    /// Its host. `None` means none.
    #[serde(default)]
    pub binding: Option<ClaimBinding>,
    /// Why the last step failed. `None` means that none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ClaimTrouble>,
    /// Holds of the project, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub holds: BTreeMap<String, PowerHold>,
    /// Power of the host.
    #[serde(default)]
    pub power: ClaimPower,
    /// The last reboots, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reboots: Vec<RebootRecord>,
    /// Conditions.
    #[serde(default)]
    pub conditions: Vec<ClaimCondition>,
    /// Labels and annotations of its host that the pool publishes.
    #[serde(default, skip_serializing_if = "ClaimMetadata::is_default")]
    pub metadata: ClaimMetadata,
    /// The last events, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ClaimNote>,
}

impl Claim {
    /// `true` if it stands in the queue.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state == ClaimState::Pending && !self.spec.paused
    }

    /// Adds an event; beyond [`NOTES_KEPT_MAX`] the oldest are dropped. An event that repeats the
    /// last one is left out.
    pub(crate) fn note(&mut self, at: Timestamp, reason: &str, message: impl Into<String>) {
        let message = message.into();
        let last = self.notes.last();
        if last.is_some_and(|last| last.reason == reason && last.message == message) {
            return;
        }
        self.notes.push(ClaimNote {
            at,
            reason: reason.to_owned(),
            message,
        });
        let surplus = self.notes.len().saturating_sub(NOTES_KEPT_MAX);
        self.notes.drain(..surplus);
    }
}
