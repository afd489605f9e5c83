//! Commands about certificates.

use proto_types::{AllocationId, MachineId};
use serde::{Deserialize, Serialize};

/// Which certificates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateChoice {
    /// The one of this serial number.
    Serial(String),
    /// All that carry this SPIFFE id.
    Identity(String),
    /// All of an allocation of a machine.
    Allocation(MachineId, AllocationId),
}

/// See [`Op::RevokeCertificates`](crate::Op::RevokeCertificates).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeCertificates {
    /// Which.
    pub choice: CertificateChoice,
    /// Why.
    #[serde(default)]
    pub reason: String,
}
