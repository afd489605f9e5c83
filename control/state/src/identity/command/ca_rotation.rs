//! Commands that rotate the certificate authority.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::identity::entity::CaRecord;

/// See [`Op::BeginCaRotation`](crate::Op::BeginCaRotation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BeginCaRotation {
    /// The authorities of the next generation: root and intermediates, their private keys sealed.
    pub authorities: Vec<CaRecord>,
    /// Latest end of the trust in the old generation, a minute to ninety days away.
    pub until: Timestamp,
    /// `true` if all identities are asked to renew now.
    pub is_forced: bool,
}

/// See [`Op::ForceCaRotation`](crate::Op::ForceCaRotation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForceCaRotation {
    /// Latest end of the trust in the old generation. Later than before has no effect.
    pub until: Timestamp,
}
