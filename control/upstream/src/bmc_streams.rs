//! The open streams on which agents of the published stack take orders for BMCs.
//!
//! Invariant: of a partition's streams on one control node only the newest takes orders. An agent
//! that comes back opens a new stream before its old one is known to have ended, and nobody reads
//! that one any more. Streams on different nodes are kept apart by
//! [`TakeBmcOrder`](control_state::TakeBmcOrder).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto_types::PartitionId;
use tokio::sync::watch;
use uuid::Uuid;

/// The streams of all partitions on this node. Cheap to clone (`Arc`).
#[derive(Debug, Clone, Default)]
pub(crate) struct BmcStreams(Arc<Mutex<BTreeMap<PartitionId, PartitionStreams>>>);

#[derive(Debug, Default)]
struct PartitionStreams {
    /// The newest last.
    open: Vec<Uuid>,
    /// Told whenever one of them ends.
    ends: watch::Sender<()>,
}

/// One open stream; it counts as ended once this is dropped.
#[derive(Debug)]
pub(crate) struct OpenBmcStream {
    all: BmcStreams,
    partition: PartitionId,
    id: Uuid,
}

impl BmcStreams {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PartitionId, PartitionStreams>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a stream of a partition, and what tells when another one of it ends.
    pub(crate) fn open(&self, partition: &PartitionId) -> (OpenBmcStream, watch::Receiver<()>) {
        let id = Uuid::now_v7();
        let mut all = self.lock();
        let streams = all.entry(partition.clone()).or_default();
        streams.open.push(id);
        let stream = OpenBmcStream {
            all: self.clone(),
            partition: partition.clone(),
            id,
        };
        (stream, streams.ends.subscribe())
    }
}

impl OpenBmcStream {
    /// Its id.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// `true` if no newer stream of the partition is open on this node.
    pub(crate) fn is_newest(&self) -> bool {
        let all = self.all.lock();
        let streams = all.get(&self.partition);
        streams.and_then(|streams| streams.open.last()) == Some(&self.id)
    }

    /// Ids of the partition's streams that are open on this node, this one among them.
    pub(crate) fn open(&self) -> BTreeSet<Uuid> {
        let all = self.all.lock();
        let streams = all.get(&self.partition);
        streams.map_or_else(BTreeSet::new, |streams| {
            streams.open.iter().copied().collect()
        })
    }
}

impl Drop for OpenBmcStream {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        let Some(streams) = all.get_mut(&self.partition) else {
            return;
        };
        streams.open.retain(|id| *id != self.id);
        if streams.open.is_empty() {
            all.remove(&self.partition);
        } else {
            streams.ends.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stream_takes_orders_until_it_ends() {
        let all = BmcStreams::default();
        let lab: PartitionId = "lab".parse().unwrap();
        let (first, mut ends) = all.open(&lab);
        assert!(first.is_newest());
        let (second, _) = all.open(&lab);
        let (elsewhere, _) = all.open(&"other".parse().unwrap());
        assert!(!first.is_newest() && second.is_newest() && elsewhere.is_newest());
        assert_eq!(first.open(), [first.id(), second.id()].into());
        drop(second);
        assert!(ends.has_changed().unwrap());
        ends.mark_unchanged();
        assert!(first.is_newest());
        drop((first, elsewhere));
        assert!(all.lock().is_empty());
    }
}
