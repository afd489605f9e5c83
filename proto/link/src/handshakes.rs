//! Handshakes in progress, bounded in total and per client network.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use proto_bounds::network;

use crate::limits::{
    HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX, HANDSHAKES_UNPROVED_MAX,
    HANDSHAKES_UNPROVED_PER_ADDRESS_MAX,
};

/// Handshakes in progress, in total and by client network.
#[derive(Debug, Default)]
pub(crate) struct OpenHandshakes(Mutex<InProgress>);

#[derive(Debug, Default)]
struct InProgress {
    count: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// One handshake in progress. Dropping it frees its place.
#[derive(Debug)]
pub(crate) struct HandshakePlace {
    all: Arc<OpenHandshakes>,
    of: IpAddr,
    /// `true` if the caller must prove its address first (QUIC Retry). Above the unproved bounds
    /// some source addresses may be forged, and a forger must not use up the places of the
    /// addresses it names.
    pub(crate) must_prove: bool,
}

impl OpenHandshakes {
    /// Number of handshakes in progress.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().count
    }

    /// Takes a place. `None` means that the total or the bound of the address's network is reached.
    pub(crate) fn begin(self: &Arc<Self>, address: IpAddr) -> Option<HandshakePlace> {
        let of = network(address);
        let mut now = self.0.lock();
        let its = now.by_address.get(&of).copied().unwrap_or_default();
        // Before the entry is made: source addresses may be forged, and refused ones must not make
        // the map grow.
        if now.count >= HANDSHAKES_MAX || its >= HANDSHAKES_PER_ADDRESS_MAX {
            return None;
        }
        let must_prove =
            now.count >= HANDSHAKES_UNPROVED_MAX || its >= HANDSHAKES_UNPROVED_PER_ADDRESS_MAX;
        now.count += 1;
        now.by_address.insert(of, its + 1);
        drop(now);
        let all = Arc::clone(self);
        Some(HandshakePlace {
            all,
            of,
            must_prove,
        })
    }
}

impl Drop for HandshakePlace {
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
        let all = Arc::new(OpenHandshakes::default());
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
}
