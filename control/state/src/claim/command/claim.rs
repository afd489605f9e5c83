//! Creation, change and end of claims.

use proto_types::{ClaimId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::claim::entity::ClaimSpec;
use crate::meta::Labels;

/// See [`Op::CreateClaim`](crate::Op::CreateClaim).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateClaim {
    /// Id of the new claim.
    pub id: ClaimId,
    /// The project.
    pub project: ProjectId,
    /// The client's key. A claim of the project that has it already, with the same intent, is the
    /// answer.
    pub name: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// The intent.
    pub spec: ClaimSpec,
    /// A paused claim of the project that goes on under this name: its owner moved. `None` makes a
    /// new one.
    #[serde(default)]
    pub adopt: Option<ClaimId>,
}

/// See [`Op::UpdateClaim`](crate::Op::UpdateClaim).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateClaim {
    /// The claim.
    pub id: ClaimId,
    /// Generation that it must have. `None` means any.
    #[serde(default)]
    pub expected: Option<u64>,
    /// The project that must have it.
    pub project: ProjectId,
    /// Epoch that its binding must have. `None` means any.
    #[serde(default)]
    pub epoch: Option<u64>,
    /// The new intent. `None` leaves it as it is.
    #[serde(default)]
    pub spec: Option<ClaimSpec>,
    /// All labels. `None` leaves them as they are.
    #[serde(default)]
    pub labels: Option<Labels>,
}

/// See [`Op::DeleteClaim`](crate::Op::DeleteClaim).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteClaim {
    /// The claim.
    pub id: ClaimId,
    /// The project that must have it.
    pub project: ProjectId,
    /// Epoch that its binding must have. `None` means any.
    #[serde(default)]
    pub epoch: Option<u64>,
}
