//! The revocation source of a server.

use std::time::Duration;

use proto_identity::PeerIdentity;
use tokio::sync::watch;

/// The revoked identities. The server asks when a session begins and at each change.
pub trait Revocations: Send + Sync + 'static {
    /// `true` if sessions of this certificate must end.
    fn is_revoked(&self, peer: &PeerIdentity) -> bool;
    /// The time over which the renewals of all agents that are due spread, if the owner of this
    /// certificate must renew it with a new key now. `None` means it is not due.
    fn is_due(&self, _peer: &PeerIdentity) -> Option<Duration> {
        None
    }
    /// Changes at each revocation and at each renewal that falls due. Sessions end when the sender
    /// is dropped.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// An empty revocation list, for tests and tools.
#[derive(Debug)]
pub struct NeverRevoked(watch::Sender<u64>);

impl Default for NeverRevoked {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Revocations for NeverRevoked {
    fn is_revoked(&self, _peer: &PeerIdentity) -> bool {
        false
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
