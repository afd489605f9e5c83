//! The certificate authority of the mesh: redeems tickets and issues one-hour certificates.
//!
//! At the first start a root and two intermediates (agents, nodes) are made and put into the
//! replicated state, their keys sealed with a key that lives in a file of the node. A ticket is
//! 32 random bytes of which the state holds the SHA-256; redeeming it is one replicated command,
//! so that two racing agents cannot both use it. Each certificate is recorded before it is
//! handed out, and renewing asks the record whether it was revoked.
//!
//! Invariants:
//! - a generation of the authority is followed by the next with an overlap, in which both are
//!   trusted, and then its keys are deleted;
//! - a private key of an agent never comes here, only requests signed by it;
//! - the identity in a certificate follows from the ticket or the old certificate, never from the
//!   request;
//! - a caller without a valid ticket cannot make control write;
//! - secrets are compared in constant time and appear in no log, error or `Debug`.
//!
//! Entry point: [`Pki::open`].

mod authority_watch;
mod ca;
mod enrol;
mod error;
mod generations;
mod invites;
mod judge;
mod node_source;
mod nodes;
mod peer_credential;
mod record;
mod revoked;
mod rotation;
mod seal;
mod tickets;
mod tpm;
mod validity;

pub use authority_watch::AuthorityWatch;
pub use ca::Pki;
pub use enrol::{Enrol, Issued};
pub use error::PkiError;
pub use invites::{INVITE_LIFE, invite_id};
pub use judge::{REPEAT_MAX, RESUME_MAX};
pub use nodes::{NewNodeInvitation, NodeAdmission, NodeJoin};
pub use peer_credential::{PeerCredential, peer_credential_at_rest};
pub use revoked::Revoked;
pub use seal::{SealingKey, Unwrapper, WrappedKey};
pub use tickets::{
    BOOT_TICKET_LIFE, JOIN_TICKET_LIFE, JOIN_TICKET_LIFE_MAX, NewBootTicket, NewJoinTicket,
};
pub use tpm::{TpmAnswer, TpmChallenge, TpmClaim, tpm_of_certificate};
