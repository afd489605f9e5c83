//! Power of the host of a claim.

use proto_types::{ClaimId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::claim::entity::RebootMode;

/// See [`Op::RebootClaim`](crate::Op::RebootClaim).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RebootClaim {
    /// The claim.
    pub id: ClaimId,
    /// The project that must have it.
    pub project: ProjectId,
    /// Epoch that its binding must have. `None` means any.
    #[serde(default)]
    pub epoch: Option<u64>,
    /// The caller's id of the request: the same id reboots once.
    pub request: String,
    /// The way.
    #[serde(default)]
    pub mode: RebootMode,
}

/// See [`Op::HoldClaim`](crate::Op::HoldClaim).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldClaim {
    /// The claim.
    pub id: ClaimId,
    /// The project that must have it.
    pub project: ProjectId,
    /// Epoch that its binding must have. `None` means any.
    #[serde(default)]
    pub epoch: Option<u64>,
    /// Key of the hold, among those of the project.
    pub key: String,
    /// `true` sets the hold, `false` ends it.
    pub is_held: bool,
    /// Free text.
    #[serde(default)]
    pub reason: String,
}
