//! What all agents share: enrolment, session, renewal, last-good desired state.
//!
//! An agent binary flattens [`AgentArgs`] into its command line, hands its [`AgentCommand`] to
//! [`main()`] and calls [`AgentArgs::start`]: the key is made or loaded, a one-time ticket is traded for a
//! certificate or the stored one is used again, and a session with control is kept and renewed
//! in the background. Clients of every mesh service come from [`Agent::client`]; desired state
//! is followed by [`run_desired`].
//!
//! Invariants:
//! - The private key never leaves the state directory (0700, files 0600, written atomically).
//! - An agent that has joined starts without control: it waits for the session, not the caller.
//! - Orders older than the newest (term, generation) that was seen are dropped.
//! - The last desired state survives restarts; a copy that control did not sign for this agent,
//!   or that is older than what was seen, counts as none.

mod agent;
mod args;
pub mod cache;
mod desired;
mod disk_spool;
mod enrol;
mod error;
mod metrics;
mod program;
mod renew;
mod spool;
pub mod state_dir;
pub mod tpm;
mod traces;

pub use agent::{Agent, AgentIdentity};
pub use args::{AgentArgs, AgentKind, KeyArgs, TpmArgs};
pub use base_runtime::logging::LogFormat;
pub use cache::{CacheError, LastGood};
pub use desired::{Fenced, Origin, run_desired};
pub use disk_spool::{Delivery, DiskSpool, Spooled};
pub use enrol::{BootClaim, NonceReader, enrol_once};
pub use error::KitError;
pub use metrics::{Served, Steps};
pub use program::{AgentCommand, main};
pub use proto_identity::{Credential, Key, Roots, SpiffeId};
pub use proto_link::{LinkError, LinkStatus, SessionState, Socket, runtime};
pub use spool::EventSpool;
pub use state_dir::{StateDir, key_fingerprint};
pub use traces::Traced;

/// Makes *ring* the process's crypto provider; call it first thing in each main. Later calls
/// change nothing.
pub fn install_crypto_provider() {
    // An error says that one is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
}
