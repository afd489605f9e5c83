//! The command that issues a certificate.

use proto_types::Digest;
use serde::{Deserialize, Serialize};

use crate::identity::entity::{Certificate, JoinedBy};

/// See [`Op::IssueCertificate`](crate::Op::IssueCertificate).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssueCertificate {
    /// The certificate to record, with the digest of its key.
    pub certificate: Certificate,
    /// Why.
    pub cause: Cause,
}

/// Why somebody gets a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It joins.
    Join(JoinedBy),
    /// It has a session with one of this key (SHA-256).
    Renewal(Digest),
    /// It showed one of this key that has ended.
    Resume(Digest),
}
