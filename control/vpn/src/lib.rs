//! The VPN by which operators reach firewalls: what its control server must be able to do.

pub mod headscale;

use std::fmt;
use std::time::Duration;

use proto_types::Timestamp;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How long is gone by what was found of the VPN: anybody may ask for it.
const LOOK: Duration = Duration::from_secs(60);
/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a VPN's control server did not do it.
#[derive(Debug, thiserror::Error)]
pub enum VpnError {
    /// It did not answer, or not in time.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It does not know the key to its API.
    #[error("it refused the API key")]
    KeyRefused,
    /// It refused, or answered what nobody understands.
    #[error("it answered {0}")]
    Refused(String),
}

/// A key that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedVpnKey {
    /// Whose nodes it makes; who is not known there is made.
    pub user: String,
    /// Nodes that it makes are forgotten when they go away.
    pub ephemeral: bool,
    /// It makes more than one node.
    pub reusable: bool,
    /// How long it can be used.
    pub life: Duration,
}

/// A key by which a node comes in.
#[derive(Clone, PartialEq, Eq)]
pub struct VpnKey {
    /// Its number, by which its nodes are found again.
    pub id: String,
    /// The secret.
    pub key: String,
    /// Since when it is there.
    pub created_at: Timestamp,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

impl fmt::Debug for VpnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VpnKey")
            .field("id", &self.id)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// A node of the VPN.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VpnNode {
    /// Number.
    pub id: u64,
    /// Name.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// Number of the key by which it came in, where it came by one.
    pub key: Option<String>,
    /// Addresses inside of the VPN.
    pub addresses: Vec<String>,
    /// When it was last there.
    pub last_seen: Option<Timestamp>,
    /// Whether it is there.
    pub online: bool,
}

/// A VPN's control server.
#[tonic::async_trait]
pub trait Vpn: fmt::Debug + Send + Sync {
    /// Where nodes find it.
    fn address(&self) -> &str;

    /// Makes a key.
    ///
    /// # Errors
    /// When it does not answer or refuses.
    async fn key(&self, wanted: WantedVpnKey) -> Result<VpnKey, VpnError>;

    /// The nodes of a user, or all.
    ///
    /// # Errors
    /// When it does not answer or refuses.
    async fn nodes(&self, user: Option<&str>) -> Result<Vec<VpnNode>, VpnError>;

    /// Ends a key and removes the nodes of its user that came in by it. What is gone already
    /// is fine.
    ///
    /// # Errors
    /// When it does not answer or refuses; it can be repeated.
    async fn remove(&self, user: &str, key: &str) -> Result<(), VpnError>;
}

/// What was found of a VPN last.
#[derive(Debug, Default)]
pub struct VpnHealth(Mutex<Option<(Instant, Result<(), &'static str>)>>);

impl VpnHealth {
    /// Whether its control server does what is asked, or why not, in words for everybody. Who
    /// comes while it is being looked at waits for that look.
    pub async fn of(&self, vpn: &dyn Vpn) -> Result<(), &'static str> {
        let mut last = self.0.lock().await;
        if let Some((at, found)) = *last
            && at.elapsed() < LOOK
        {
            return found;
        }
        let found = match timeout(PATIENCE, vpn.nodes(None)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(VpnError::KeyRefused)) => Err("its control server refuses the API key"),
            Ok(Err(VpnError::Refused(_))) => Err("its control server refuses"),
            Ok(Err(VpnError::Unreachable(_))) | Err(_) => Err("its control server does not answer"),
        };
        *last = Some((Instant::now(), found));
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers by turns: well, with a refusal, not at all.
    #[derive(Debug, Default)]
    struct Moody(AtomicUsize);

    #[tonic::async_trait]
    impl Vpn for Moody {
        fn address(&self) -> &str {
            "https://vpn.example"
        }

        async fn key(&self, _wanted: WantedVpnKey) -> Result<VpnKey, VpnError> {
            Err(VpnError::KeyRefused)
        }

        async fn nodes(&self, _user: Option<&str>) -> Result<Vec<VpnNode>, VpnError> {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => Ok(Vec::new()),
                1 => Err(VpnError::KeyRefused),
                _ => std::future::pending().await,
            }
        }

        async fn remove(&self, _user: &str, _key: &str) -> Result<(), VpnError> {
            Err(VpnError::KeyRefused)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_vpn_is_looked_at_once_in_a_while() {
        let (vpn, health) = (Moody::default(), VpnHealth::default());
        for found in [
            Ok(()),
            Err("its control server refuses the API key"),
            Err("its control server does not answer"),
        ] {
            for _ in 0..3 {
                assert_eq!(health.of(&vpn).await, found);
            }
            tokio::time::advance(LOOK).await;
        }
        assert_eq!(vpn.0.load(Ordering::SeqCst), 3);
    }
}
