//! The command that issues a certificate.

use proto_types::Digest;
use serde::{Deserialize, Serialize};

use crate::identity::entity::{Certificate, JoinedBy};

/// See [`Op::IssueCertificate`](crate::Op::IssueCertificate).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssueCertificate {
    /// The certificate to record, with the digest of its key.
    pub certificate: Certificate,
    /// The reason for which the identity gets the certificate.
    pub cause: Cause,
}

/// The reason for which an identity gets a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It joins, with this proof.
    Join(JoinedBy),
    /// It renews over a session. The digest is SHA-256 of the public key of that session.
    Renewal(Digest),
    /// It resumes with an expired certificate. The digest is SHA-256 of the public key of that
    /// certificate.
    Resume(Digest),
}
