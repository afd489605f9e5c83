//! How fast sessions are let in, so that thousands of agents that come back at once neither come
//! in step nor keep the node from finishing what it began.
//!
//! Before the handshake's signatures the number of those in progress is bounded, of one address
//! and in all: a node that finishes faster lets more in. Who is refused there is told no time,
//! for QUIC has no word for it, and comes back after one of its own.
//! After the handshake places are given out at a steady rate, some in advance. Who finds none is
//! told when its turn would be, each a little later than the one before.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proto_bounds::network;
use tokio::time::Instant;

use crate::limits::{
    BUSY_MAX, BUSY_MIN, HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX, HANDSHAKES_UNPROVED_MAX,
    HANDSHAKES_UNPROVED_PER_ADDRESS_MAX,
};

/// How many sessions with a certificate are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionRate {
    /// In a second, for as long as it takes.
    pub per_second: u32,
    /// At once, after a time in which few came.
    pub at_once: u32,
}

/// Gives out places.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Time that one place takes.
    each: Duration,
    /// How much of it may be given in advance.
    ahead: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Up to when places were given.
    given: Instant,
    /// Up to when those who found none were told to wait.
    told: Instant,
}

impl Admission {
    pub(crate) fn new(rate: AdmissionRate) -> Self {
        let each = Duration::from_secs(1) / rate.per_second.max(1);
        let now = Instant::now();
        let ahead = each.saturating_mul(rate.at_once.max(1));
        Self {
            each,
            ahead,
            state: Mutex::new(State {
                given: now.checked_sub(ahead).unwrap_or(now),
                told: now,
            }),
        }
    }

    /// Takes a place, or says when to come back.
    pub(crate) fn enter(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock();
        let given = state.given.max(now.checked_sub(self.ahead).unwrap_or(now));
        if given + self.each <= now {
            state.given = given + self.each;
            return Ok(());
        }
        // Never later than the longest wait: by then whoever was told may have gone elsewhere.
        let turn = state.told.max(now + BUSY_MIN) + self.each;
        state.told = turn.min(now + BUSY_MAX);
        Err(state.told - now)
    }
}

/// Handshakes in progress.
#[derive(Debug, Default)]
pub(crate) struct Handshaking(Mutex<InProgress>);

#[derive(Debug, Default)]
struct InProgress {
    count: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// One handshake in progress, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    all: Arc<Handshaking>,
    of: IpAddr,
    /// Whether the caller must prove its address first: so many came that some may be forged, and
    /// a forger must not take the places of those whose address it names.
    pub(crate) must_prove: bool,
}

impl Handshaking {
    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().count
    }

    /// A place, unless all are taken or those that one address may take.
    pub(crate) fn begin(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let of = network(address);
        let mut now = self.0.lock();
        let its = now.by_address.get(&of).copied().unwrap_or_default();
        if now.count >= HANDSHAKES_MAX || its >= HANDSHAKES_PER_ADDRESS_MAX {
            return None;
        }
        let must_prove =
            now.count >= HANDSHAKES_UNPROVED_MAX || its >= HANDSHAKES_UNPROVED_PER_ADDRESS_MAX;
        now.count += 1;
        now.by_address.insert(of, its + 1);
        drop(now);
        let all = Arc::clone(self);
        Some(Place {
            all,
            of,
            must_prove,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut now = self.all.0.lock();
        now.count = now.count.saturating_sub(1);
        if let Some(its) = now.by_address.get_mut(&self.of) {
            *its = its.saturating_sub(1);
            if *its == 0 {
                now.by_address.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_places_to_others() {
        let all = Arc::new(Handshaking::default());
        let take = |address: &str| all.begin(address.parse().unwrap());
        let mut taken = Vec::new();
        // A host has all addresses of its network to choose from.
        for number in 0..HANDSHAKES_PER_ADDRESS_MAX {
            let place = take(&format!("2001:db8::{number:x}")).unwrap();
            let is_many = number >= HANDSHAKES_UNPROVED_PER_ADDRESS_MAX;
            assert_eq!(place.must_prove, is_many, "{number}");
            taken.push(place);
        }
        assert!(take("2001:db8::ffff:1").is_none());
        let mut others = 0;
        while taken.len() < HANDSHAKES_MAX {
            taken.push(take(&format!("192.0.2.{}", others % 200)).unwrap());
            others += 1;
        }
        assert!(take("198.51.100.1").is_none(), "all are taken");
        assert_eq!(all.count(), HANDSHAKES_MAX);
        taken.remove(0);
        assert!(take("2001:db8::1").is_some());
        assert!(take("::ffff:198.51.100.1").unwrap().must_prove);
        taken.clear();
        assert_eq!(all.count(), 0);
        assert!(all.0.lock().by_address.is_empty());
    }

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
