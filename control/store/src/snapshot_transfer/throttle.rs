//! The rate limit of the snapshots that this node sends.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Rate limit over all snapshots that this node sends at the same time. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SendThrottle(Option<Arc<RateBucket>>);

/// A token bucket without a burst.
#[derive(Debug)]
struct RateBucket {
    bytes_per_second: u64,
    /// Time at which the next piece may be sent.
    next: Mutex<Instant>,
}

impl SendThrottle {
    /// Limits to `bytes_per_second`; `None` and zero mean no limit.
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Self {
        let limit = bytes_per_second.filter(|limit| *limit > 0);
        Self(limit.map(|bytes_per_second| {
            let next = Mutex::new(Instant::now());
            Arc::new(RateBucket {
                bytes_per_second,
                next,
            })
        }))
    }

    /// Waits until `bytes` more bytes may be sent.
    pub(super) async fn acquire(&self, bytes: usize) {
        let Some(bucket) = &self.0 else { return };
        // Up to 2^53 the conversions are exact, and a piece is far smaller.
        let cost = Duration::from_secs_f64(bytes as f64 / bucket.bytes_per_second as f64);
        let turn = {
            let mut next = bucket.next.lock();
            // The turn is reserved before the wait: pieces of several snapshots that wait at the
            // same time get turns one after the other, and not all the same.
            let turn = (*next).max(Instant::now());
            *next = turn + cost;
            turn
        };
        sleep_until(turn).await;
    }
}
