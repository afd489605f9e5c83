//! The cached health of a VPN.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::{Vpn, VpnError};

/// How long a result is reused. Any caller of the health service can ask, so without the cache
/// callers could flood the VPN's control server.
const CACHE_LIFE: Duration = Duration::from_secs(60);
/// Time limit of one check. A control server that is slower counts as not answering.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Caches the result of the last health check.
#[derive(Debug, Default)]
pub struct VpnHealth(Mutex<Option<(Instant, Result<(), &'static str>)>>);

impl VpnHealth {
    /// Checks that the VPN's control server answers, at most once in `CACHE_LIFE`. A call during a
    /// check waits for that check.
    ///
    /// # Errors
    /// The reason why it does not, in words that any caller may see.
    pub async fn of(&self, vpn: &dyn Vpn) -> Result<(), &'static str> {
        // The lock is held during the check on purpose: callers that arrive meanwhile share its
        // result instead of each sending a request.
        let mut last = self.0.lock().await;
        if let Some((at, found)) = *last
            && at.elapsed() < CACHE_LIFE
        {
            return found;
        }
        let found = match timeout(CHECK_TIMEOUT, vpn.nodes(None)).await {
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
    use crate::{VpnKey, VpnNode, WantedVpnKey};

    /// Gives a good answer, then a refusal, then none.
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
            tokio::time::advance(CACHE_LIFE).await;
        }
        assert_eq!(vpn.0.load(Ordering::SeqCst), 3);
    }
}
