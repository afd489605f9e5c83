//! SPIFFE-style identities, certificate profiles, join tickets and rustls configurations.
//!
//! The identity of a peer is the only URI in its certificate's subject alternative name:
//! `spiffe://<trust domain>/partition/<p>/{core,bmc,pixie}/<id>`, `/machine/<uuid>`,
//! `/project/<project>/machine/<uuid>`, `/node/<id>` or `/peer/<number>`.
//!
//! Invariants:
//! - Keys are generated where they are used ([`Key::generate`]); only certificate requests travel.
//! - One root; agents, nodes and peers have separate intermediates, each limited by its extended
//!   key usage, so that an agent's certificate can never serve and a node's can never call.
//! - Between control nodes the peers' intermediate is the only trust anchor: any other certificate
//!   of the same root fails the handshake ([`members`]).
//! - TLS 1.3 only, *ring* only, no session tickets and no 0-RTT: a ticket would outlive the
//!   certificate it was made from.
//! - Callers pass the time; randomness is used only for keys and serial numbers.
//!
//! Entry points: [`SpiffeId`], [`Key`], [`profile`], [`tls`], [`members`], [`peer::PeerIdentity`],
//! [`ticket::JoinTicket`], [`invitation::NodeInvitation`], [`seal`].

mod caller;
pub mod invitation;
pub mod key;
mod member_rule;
pub mod members;
pub mod peer;
pub mod profile;
pub mod request;
pub mod seal;
pub mod spiffe;
pub mod ticket;
pub mod tls;
pub mod tpm;
pub mod verifier;

pub use caller::{AgentRole, CallerKind};
pub use key::{Credential, Key};
pub use member_rule::Roots;
pub use peer::PeerIdentity;
pub use request::CertificateRequest;
pub use rustls_pki_types::CertificateDer;
pub use spiffe::{SpiffeId, Subject};
pub use verifier::{CertificateRule, RuleVerifier};

/// The reason why an identity, key or certificate is refused.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum IdentityError {
    /// The text is not an identity of a known form.
    #[error("not an identity: {0}")]
    Spiffe(&'static str),
    /// The bytes are not a usable private key.
    #[error("not a usable private key")]
    Key,
    /// The certificate request does not parse, or its signature does not match its key.
    #[error("certificate request refused: {0}")]
    Request(&'static str),
    /// A certificate lacks what its profile demands.
    #[error("certificate refused: {0}")]
    Certificate(&'static str),
    /// A signature does not match its content.
    #[error("the signature is of another agent, another state, or was tampered with")]
    Seal,
    /// Data from a TPM is malformed or not acceptable.
    #[error("TPM: {0}")]
    Tpm(&'static str),
    /// The ticket file does not parse.
    #[error("not a join ticket: {0}")]
    Ticket(&'static str),
    /// The line does not parse.
    #[error("not the whole line of an invitation: {0}")]
    Invitation(&'static str),
    /// Signing or encoding failed inside the certificate library.
    #[error("certificate could not be made: {0}")]
    Issue(String),
    /// rustls refused the configuration.
    #[error("TLS configuration refused: {0}")]
    Tls(String),
}

/// SHA-256 as lower-case hex.
pub fn sha256_hex(data: &[u8]) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, data))
}

/// SHA-256 of the bytes.
pub fn sha256(data: &[u8]) -> [u8; 32] {
    let mut out = [0u8; 32];
    out.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, data).as_ref());
    out
}
