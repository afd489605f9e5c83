//! The claim that an allocation serves.

use proto_types::ClaimId;
use serde::{Deserialize, Serialize};

/// The claim that an allocation serves. The project sees the claim, and not the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimGrant {
    /// The claim.
    pub claim: ClaimId,
    /// Epoch of the host's binding to it.
    pub epoch: u64,
}
