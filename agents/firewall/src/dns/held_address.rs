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

    /// The networks that hold it, and when each last got it in an answer.
    pub(super) fn holders(&self) -> impl Iterator<Item = (&Asker, Instant)> {
        let leases = self.leases.iter();
        leases.map(|(asker, lease)| (asker, lease.asked))
    }

    /// End of the last lease.
    pub(super) fn until(&self) -> Option<Instant> {
        self.leases.values().map(|lease| lease.until).max()
    }
}
