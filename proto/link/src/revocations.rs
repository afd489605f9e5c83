//! What a server asks about those who come.

use std::time::Duration;

use proto_identity::PeerIdentity;
use tokio::sync::watch;

/// Which identities are revoked. Asked at each session's begin and at each change.
pub trait Revocations: Send + Sync + 'static {
    /// Whether sessions of this certificate must end.
    fn is_revoked(&self, peer: &PeerIdentity) -> bool;
    /// Whether this certificate's bearer is to get a new one with a new key now, and over how
    /// long a time all who are asked at once spread.
    fn is_due(&self, _peer: &PeerIdentity) -> Option<Duration> {
        None
    }
    /// Changes with each revocation, and with each bearer that is due. When the sender is gone, sessions end.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// Revokes nobody; for tests and tools.
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
