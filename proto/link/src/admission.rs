//! Rate limit of new sessions, so that thousands of agents that reconnect at once neither come in
//! step nor keep the node from finishing the handshakes it has begun.
//!
//! Before the handshake's signatures, [`crate::handshakes`] bounds the handshakes in progress. QUIC
//! cannot tell a refused caller when to come back, so the caller uses a backoff of its own.
//! After the handshake, this token bucket admits sessions at a steady rate with a burst allowance.
//! A caller above the rate is told its turn, each a little later than the one before.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits::{BUSY_MAX, BUSY_MIN};

/// Rate limit of sessions with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionRate {
    /// Sustained rate, sessions per second. 0 counts as 1.
    pub per_second: u32,
    /// Burst allowance, sessions. 0 counts as 1.
    pub at_once: u32,
}

/// A token bucket (GCRA) for sessions.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Time between two sessions at the sustained rate.
    interval: Duration,
    /// Burst allowance, as time.
    burst: Duration,
    state: Mutex<AdmissionState>,
}

#[derive(Debug)]
struct AdmissionState {
    /// Theoretical arrival time of the last admitted session.
    admitted: Instant,
    /// Latest turn that a refused caller was told.
    promised: Instant,
}

impl Admission {
    pub(crate) fn new(rate: AdmissionRate) -> Self {
        let interval = Duration::from_secs(1) / rate.per_second.max(1);
        let now = Instant::now();
        let burst = interval.saturating_mul(rate.at_once.max(1));
        Self {
            interval,
            burst,
            state: Mutex::new(AdmissionState {
                // A new server starts with its whole burst: after a restart all agents come.
                admitted: now.checked_sub(burst).unwrap_or(now),
                promised: now,
            }),
        }
    }

    /// Admits a session. `Err` is the wait that the caller is to be told.
    pub(crate) fn enter(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock();
        // Unused time beyond the burst is forfeited.
        let admitted = state
            .admitted
            .max(now.checked_sub(self.burst).unwrap_or(now));
        if admitted + self.interval <= now {
            state.admitted = admitted + self.interval;
            return Ok(());
        }
        // Each refused caller gets its own turn. One wait for all would bring them back in step.
        let turn = state.promised.max(now + BUSY_MIN) + self.interval;
        // Later turns are cut: until then a caller may have found another node.
        // Callers with the same cut turn are spread by the jitter that each adds to it.
        state.promised = turn.min(now + BUSY_MAX);
        Err(state.promised - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_spread_over_the_time_that_it_takes() {
        let rate = AdmissionRate {
            per_second: 100,
            at_once: 50,
        };
        let admission = Admission::new(rate);
        let now = Instant::now() + Duration::from_secs(10);
        let let_in = (0..60).filter(|_| admission.enter(now).is_ok()).count();
        assert_eq!(let_in, 50);
        let waits: Vec<_> = (0..200)
            .map(|_| admission.enter(now).unwrap_err())
            .collect();
        assert!(waits.is_sorted() && waits[0] >= BUSY_MIN, "{:?}", waits[0]);
        let span = waits[199] - waits[0];
        assert!(
            span >= Duration::from_millis(1900),
            "two seconds' worth: {span:?}"
        );
        // A second later there are a hundred places more, of which fifty are kept.
        let later = now + Duration::from_secs(1);
        let let_in = (0..200).filter(|_| admission.enter(later).is_ok()).count();
        assert_eq!(let_in, 50);
        let longest = (0..100_000)
            .filter_map(|_| admission.enter(later).err())
            .max();
        assert_eq!(longest, Some(BUSY_MAX));
    }

    #[test]
    fn a_steady_flow_never_waits() {
        let rate = AdmissionRate {
            per_second: 100,
            at_once: 1,
        };
        let admission = Admission::new(rate);
        let mut now = Instant::now();
        for _ in 0..1000 {
            now += Duration::from_millis(10);
            admission.enter(now).unwrap();
        }
    }
}
