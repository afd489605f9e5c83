//! Addresses that pixie leased to BMCs: in memory, reported anew by each pixie.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use proto_mesh::{BmcCandidate, BmcLease};
use proto_types::{PartitionId, Timestamp};
use tokio::sync::watch;

/// BMCs of one partition that are remembered.
pub(crate) const LEASES_MAX: usize = 10_000;

/// By MAC address: IP address and end; `None` for a lease without one.
type OfPartition = BTreeMap<String, (String, Option<Timestamp>)>;

#[derive(Debug)]
pub(crate) struct Leases {
    known: Mutex<BTreeMap<PartitionId, OfPartition>>,
    changes: watch::Sender<u64>,
}

impl Leases {
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Changes with each address that comes, moves or goes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes over a report of a pixie, which lists every lease that it has given out.
    pub(crate) fn report(&self, partition: PartitionId, leases: &[BmcLease], now: Timestamp) {
        let end =
            |lease: &BmcLease| (lease.remaining_ms > 0).then(|| now.plus_ms(lease.remaining_ms));
        let fresh: OfPartition = leases
            .iter()
            .take(LEASES_MAX)
            .map(|l| (l.mac.clone(), (l.address.clone(), end(l))))
            .collect();
        let mut known = self.known.lock();
        let old = known.insert(partition, fresh.clone()).unwrap_or_default();
        let addresses = |of: &OfPartition| -> Vec<(String, String)> {
            of.iter()
                .map(|(mac, (address, _))| (mac.clone(), address.clone()))
                .collect()
        };
        if addresses(&old) != addresses(&fresh) {
            self.changes.send_modify(|n| *n += 1);
        }
    }

    /// Where BMCs may be, by MAC address.
    pub(crate) fn candidates(&self, partition: &PartitionId, now: Timestamp) -> Vec<BmcCandidate> {
        let known = self.known.lock();
        known
            .get(partition)
            .into_iter()
            .flatten()
            .filter(|(_, (_, end))| end.is_none_or(|end| end > now))
            .map(|(mac, (address, _))| BmcCandidate {
                address: address.clone(),
                mac: mac.clone(),
            })
            .collect()
    }
}
