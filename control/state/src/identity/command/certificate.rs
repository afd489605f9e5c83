//! Commands about certificates.

use proto_types::{AllocationId, MachineId};
use serde::{Deserialize, Serialize};

/// The certificates to revoke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateChoice {
    /// The certificate of this serial number; refused if it is unknown.
    Serial(String),
    /// All certificates of this SPIFFE id.
    Identity(String),
    /// All certificates of an allocation of a machine. Their identities are revoked as well.
    Allocation(MachineId, AllocationId),
}

/// See [`Op::RevokeCertificates`](crate::Op::RevokeCertificates).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeCertificates {
    /// The choice of the certificates.
    pub choice: CertificateChoice,
    /// Reason for people. Empty if none is given.
    #[serde(default)]
    pub reason: String,
}
