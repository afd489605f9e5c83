//! The parts that all agents share: enrolment, session, renewal, last-good desired state.
//!
//! An agent binary flattens [`AgentArgs`] into its command line, passes its [`AgentCommand`] to
//! [`main()`] and calls [`AgentArgs::start`]. That generates or loads the key, trades a one-time
//! ticket for a certificate or uses the stored one, and keeps a session with control and renews its
//! certificate in the background. [`Agent::client`] makes clients of every mesh service;
//! [`run_desired`] follows desired state.
//!
//! Invariants:
//! - The private key stays in the state directory (0700; files 0600, replaced atomically) or, for
//!   hammer, in memory; only its public half is sent ([`StateDir`], [`enrol_once`]).
//! - A new key is on disk before control sees it, so that one of the two keys on disk always fits
//!   the newest certificate ([`StateDir::next_key`]).
//! - An agent that has joined starts without control: calls wait for the session, the start does
//!   not ([`AgentArgs::start`]).
//! - One process renews the certificate of a state directory; others of the same identity only read
//!   it ([`Agent::follow`]).
//! - Desired state older than the newest (term, generation) seen is dropped ([`run_desired`]).
//! - The last desired state survives restarts. A copy that control did not sign for this agent, or
//!   that is older than one seen before, is refused ([`LastGood::load`]).
//! - Events in a [`DiskSpool`] leave it only after control has answered, or to make room.

mod agent;
mod args;
pub mod cache;
mod desired;
mod disk_spool;
mod enrol;
mod error;
mod fence;
mod follow;
mod key_args;
mod metrics;
mod program;
mod renew;
mod spool;
mod spooled;
pub mod state_dir;
mod steps;
pub mod tpm;
mod traces;

pub use agent::{Agent, AgentIdentity};
pub use args::{AgentArgs, AgentKind};
pub use base_runtime::logging::LogFormat;
pub use cache::{CacheError, LastGood};
pub use desired::{Origin, run_desired};
pub use disk_spool::DiskSpool;
pub use enrol::{BootClaim, NonceReader, enrol_once};
pub use error::KitError;
pub use fence::{Fenced, StateFence};
pub use key_args::{KeyArgs, TpmArgs};
pub use metrics::MetricsListener;
pub use program::{AgentCommand, main};
pub use proto_identity::{Credential, Key, Roots, SpiffeId};
pub use proto_link::{LinkError, LinkStatus, SessionState, Socket, runtime};
pub use spool::EventSpool;
pub use spooled::{Delivery, Spooled};
pub use state_dir::{StateDir, key_fingerprint};
pub use steps::Steps;
pub use traces::Traced;

/// Makes *ring* the crypto provider of the process. Call it at the beginning of `main`; later calls
/// change nothing.
pub fn install_crypto_provider() {
    // An error means that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
}
