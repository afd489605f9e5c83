use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The private network whose machines asked for an address, by its id. Empty for clients of no
/// private network, and for addresses that were taken over.
pub(super) type Asker = Arc<str>;

/// An address of a name, held by the networks that asked for it: one that asks for the addresses of
/// another cannot take them away by it.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldAddress {
    leases: BTreeMap<Asker, Lease>,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    until: Instant,
    /// When the network last got the address in an answer.
    asked: Instant,
}

impl HeldAddress {
    /// An address that one network holds.
    pub(super) fn new(asker: Asker, until: Instant, now: Instant) -> Self {
        let mut held = Self::default();
        held.extend(asker, until, now);
        held
    }

    /// Holds the address for a network at least until then.
    pub(super) fn extend(&mut self, asker: Asker, until: Instant, now: Instant) {
        let lease = Lease { until, asked: now };
        let own = self.leases.entry(asker).or_insert(lease);
        own.until = own.until.max(until);
        own.asked = now;
    }

    /// Forgets leases that have ended; `true` if one is left.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        self.leases.retain(|_, lease| lease.until > now);
        !self.leases.is_empty()
    }

    /// End of the last lease.
    pub(super) fn until(&self) -> Option<Instant> {
        self.leases.values().map(|lease| lease.until).max()
    }
}

/// Addresses in the order in which they are given up when there is no room: the oldest of the
/// network that has most. So a network that asks for very many displaces its own.
///
/// An address that several networks hold counts for the one of them that holds the fewest.
#[derive(Debug)]
pub(super) struct EvictionQueue<P> {
    /// The newest first.
    by_network: BTreeMap<Asker, Vec<(Instant, P)>>,
    /// Places that were given up so far: they are the asking network's now.
    given_up: usize,
}

impl<P: Ord> EvictionQueue<P> {
    /// Sorts addresses. `P` says where one is.
    pub(super) fn new<'a>(addresses: impl Iterator<Item = (P, &'a HeldAddress)> + Clone) -> Self {
        let mut counts: BTreeMap<&Asker, usize> = BTreeMap::new();
        for (_, held) in addresses.clone() {
            for asker in held.leases.keys() {
                *counts.entry(asker).or_default() += 1;
            }
        }
        let mut by_network: BTreeMap<Asker, Vec<(Instant, P)>> = BTreeMap::new();
        for (place, held) in addresses {
            let fewest = held.leases.iter().min_by_key(|(asker, _)| counts[asker]);
            if let Some((asker, lease)) = fewest {
                let own = by_network.entry(Arc::clone(asker)).or_default();
                own.push((lease.asked, place));
            }
        }
        for own in by_network.values_mut() {
            own.sort_by(|one, other| other.cmp(one));
        }
        Self {
            by_network,
            given_up: 0,
        }
    }

    /// The next address that makes room for one of `asker`. `None` if there is none but those that it
    /// got in the same moment.
    pub(super) fn next(&mut self, asker: &Asker, now: Instant) -> Option<P> {
        // Of networks that have equally many, the one that asks.
        let most = |(name, own): &(&Asker, &mut Vec<_>)| {
            let is_other = *name != asker;
            let new = if is_other { 0 } else { self.given_up };
            (own.len() + new, Reverse(is_other))
        };
        let (_, own) = self.by_network.iter_mut().max_by_key(most)?;
        let (asked, _) = own.last()?;
        if *asked == now {
            return None;
        }
        let (_, place) = own.pop()?;
        self.given_up += 1;
        Some(place)
    }
}
