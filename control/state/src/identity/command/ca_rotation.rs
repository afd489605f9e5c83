//! Commands that rotate the certificate authority.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::identity::entity::CaRecord;

/// See [`Op::BeginCaRotation`](crate::Op::BeginCaRotation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BeginCaRotation {
    /// The next generation: root and intermediates, their keys sealed.
    pub authorities: Vec<CaRecord>,
    /// Until when the old generation is trusted at the longest.
    pub until: Timestamp,
    /// `true` if all identities are asked to renew now.
    pub is_forced: bool,
}

/// See [`Op::ForceCaRotation`](crate::Op::ForceCaRotation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForceCaRotation {
    /// Until when the old generation is trusted at the longest; never later than before.
    pub until: Timestamp,
}
