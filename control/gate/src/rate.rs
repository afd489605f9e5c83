//! Rate limit per token and per anonymous network: calls per minute, with a burst allowance.
//!
//! Admin and infra tokens are exempt: throttling them would stop the work of all tenants.

use std::net::IpAddr;
use std::sync::Arc;

use control_authz::Principal;
use proto_bounds::{Buckets, Rate, network};
use proto_types::Timestamp;

/// Default rate limit: calls per minute, per token, per node.
pub const CALLS_PER_MINUTE: u32 = 60_000;
/// Rate limit of calls without a token: calls per minute, per network, per node.
const ANONYMOUS_PER_MINUTE: u32 = 600;
/// Burst allowance of the token bucket (GCRA), milliseconds.
const BURST_MS: u64 = 10_000;
/// Most token buckets kept in memory. When there are more, idle ones are dropped.
const CALLERS_MAX: usize = 50_000;

/// Owner of a token bucket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum RateKey {
    Token(Arc<str>),
    Network(IpAddr),
}

/// The rate limiter of this node.
#[derive(Debug)]
pub struct Rates {
    calls_per_minute: u32,
    buckets: Buckets<RateKey>,
}

impl Rates {
    /// A limit in calls per minute and token; 0 disables the rate limit.
    pub const fn new(calls_per_minute: u32) -> Self {
        Self {
            calls_per_minute,
            buckets: Buckets::new(CALLERS_MAX),
        }
    }

    /// Counts a call.
    ///
    /// # Errors
    /// Milliseconds until the next call is allowed, if the limit is exceeded.
    pub fn take(
        &self,
        who: &Principal,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<(), u64> {
        let rights = &who.rights;
        if self.calls_per_minute == 0 || rights.admin_role.is_some() || rights.infra_role.is_some()
        {
            return Ok(());
        }
        let (key, per_minute) = match (who.user.is_empty(), address) {
            (false, _) => (
                RateKey::Token(Arc::clone(&who.token)),
                self.calls_per_minute,
            ),
            (true, Some(address)) => {
                let bound = ANONYMOUS_PER_MINUTE.min(self.calls_per_minute);
                (RateKey::Network(network(address)), bound)
            }
            (true, None) => return Ok(()),
        };
        self.count(key, per_minute, now.ms().saturating_mul(1000))
    }

    fn count(&self, key: RateKey, per_minute: u32, now_us: u64) -> Result<(), u64> {
        let rate = Rate {
            per_minute,
            burst_ms: BURST_MS,
        };
        self.buckets.count(key, rate, now_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> u64 {
        1_000_000_000 + seconds * 1_000_000
    }

    fn calls(rates: &Rates, name: &str, at_us: u64) -> usize {
        let call = || rates.count(RateKey::Token(name.into()), 60, at_us);
        (0..1000).take_while(|_| call().is_ok()).count()
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let rates = Rates::new(60);
        assert_eq!(calls(&rates, "a", at(0)), 10, "a burst");
        assert_eq!(calls(&rates, "b", at(0)), 10, "each has its own");
        assert_eq!(calls(&rates, "a", at(3)), 3, "one a second");
        assert_eq!(
            calls(&rates, "a", at(1000)),
            10,
            "pauses add up to a burst alone"
        );
        let wait = rates
            .count(RateKey::Token("a".into()), 60, at(1000))
            .unwrap_err();
        assert_eq!(
            calls(&rates, "a", at(1000) + wait * 1000),
            1,
            "waiting so long is enough"
        );
    }

    #[test]
    fn who_works_for_everybody_is_not_bounded() {
        let rates = Rates::new(1);
        let mut who = Principal::anonymous();
        who.user = "ada".into();
        let now = Timestamp::from_ms(1);
        assert!((0..20).any(|_| rates.take(&who, None, now).is_err()));
        who.rights.admin_role = Some(proto_public::api::v2::AdminRole::Viewer);
        assert!((0..20).all(|_| rates.take(&who, None, now).is_ok()));
        let nobody = Principal::anonymous();
        let address = Some(IpAddr::from([10, 0, 0, 1]));
        assert!((0..20).any(|_| rates.take(&nobody, address, now).is_err()));
        let unbounded = Rates::new(0);
        assert!((0..100_000).all(|_| unbounded.take(&nobody, address, now).is_ok()));
    }

    #[test]
    fn addresses_of_one_network_share_a_rate() {
        let rates = Rates::new(60);
        let nobody = Principal::anonymous();
        let now = Timestamp::from_ms(1);
        let calls = (0..100u16).filter(|number| {
            let address = format!("2001:db8::{number:x}").parse().unwrap();
            rates.take(&nobody, Some(address), now).is_ok()
        });
        assert_eq!(calls.count(), 10);
        let other = Some("2001:db8:0:1::1".parse().unwrap());
        assert!(rates.take(&nobody, other, now).is_ok());
    }
}
