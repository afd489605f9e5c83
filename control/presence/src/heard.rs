//! Times at which machines and partitions were last heard, and when a partition counts as cut off.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{MachineId, PartitionId, Timestamp};

/// A partition that is silent for longer counts as cut off, milliseconds. Core agents report every
/// 10 s, so six reports are missing by then.
const UNOBSERVED_AFTER_MS: u64 = 60_000;
/// Grace period after a partition comes back, milliseconds: until then the silence of its machines
/// does not count. They dial again after [`proto_link::limits::BACKOFF_MAX`] at most.
const RETURN_MS: u64 = 60_000;
/// Most machines remembered. When there are more, the longest silent is forgotten.
const MACHINES_MAX: usize = 200_000;

/// Presence of the fleet as this node observed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Time at which this node began to listen.
    pub listening_since: Timestamp,
    /// When each machine was last heard.
    pub heard: BTreeMap<MachineId, Timestamp>,
    /// Partitions that are cut off or within their grace period. Silence of their machines must not
    /// be judged.
    pub unobserved: BTreeSet<PartitionId>,
}

/// Presence recorded since this node began to listen.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    since: Timestamp,
    machines: BTreeMap<MachineId, Timestamp>,
    partitions: BTreeMap<PartitionId, PartitionPresence>,
}

/// When a partition was heard.
#[derive(Debug, Clone, Copy)]
struct PartitionPresence {
    last: Timestamp,
    /// Start of the continuous presence.
    since: Timestamp,
}

impl Heard {
    /// An empty record that begins at `since`.
    pub(crate) fn since(since: Timestamp) -> Self {
        Self {
            since,
            ..Self::default()
        }
    }

    /// Records a message from an agent of this partition.
    pub(crate) fn partition(&mut self, id: &PartitionId, now: Timestamp) {
        // A partition that is heard for the first time counts as present since this node began to
        // listen: nobody knows of a gap before that.
        let new = PartitionPresence {
            last: self.since,
            since: self.since,
        };
        let presence = self.partitions.entry(id.clone()).or_insert(new);
        if now.since_ms(presence.last) > UNOBSERVED_AFTER_MS {
            presence.since = now;
        }
        presence.last = now;
    }

    /// Records a message from a machine.
    pub(crate) fn machine(&mut self, id: MachineId, now: Timestamp) {
        // Machine ids come from the network, so the map is bounded.
        self.machines.insert(id, now);
        if self.machines.len() > MACHINES_MAX {
            let oldest = self.machines.iter().min_by_key(|(_, at)| **at);
            let oldest = oldest.map(|(id, _)| *id);
            oldest.and_then(|id| self.machines.remove(&id));
        }
    }

    /// The last message of a machine. `None` means that it was not heard.
    pub(crate) fn last(&self, id: MachineId) -> Option<Timestamp> {
        self.machines.get(&id).copied()
    }

    /// The presence of these partitions and of all machines.
    pub(crate) fn fleet<'a>(
        &self,
        partitions: impl Iterator<Item = &'a PartitionId>,
        now: Timestamp,
    ) -> Fleet {
        let is_unobserved = |id: &&PartitionId| {
            let Some(presence) = self.partitions.get(*id) else {
                return now.since_ms(self.since) > UNOBSERVED_AFTER_MS;
            };
            // After an interruption its machines need time to dial again. Judged at once, the
            // machines of a partition that had a network failure would all count as dead.
            let is_back = presence.since > self.since;
            now.since_ms(presence.last) > UNOBSERVED_AFTER_MS
                || (is_back && now.since_ms(presence.since) < RETURN_MS)
        };
        Fleet {
            listening_since: self.since,
            heard: self.machines.clone(),
            unobserved: partitions.filter(is_unobserved).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_partition_is_unobserved() {
        let mut heard = Heard::since(Timestamp::from_ms(1000));
        let (p1, p2): (PartitionId, PartitionId) = ("p1".parse().unwrap(), "p2".parse().unwrap());
        let unobserved = |heard: &Heard, now| {
            let partitions = [&p1, &p2].into_iter();
            heard.fleet(partitions, Timestamp::from_ms(now)).unobserved
        };
        // A node that just began has heard nobody yet.
        assert!(unobserved(&heard, 61_000).is_empty());
        heard.partition(&p1, Timestamp::from_ms(30_000));
        assert_eq!(unobserved(&heard, 61_001), BTreeSet::from([p2.clone()]));
        assert_eq!(unobserved(&heard, 90_001).len(), 2);
        // Back after an hour: its machines get the time to say something.
        let back = 3_700_000;
        for ms in [back, back + 30_000, back + 59_999] {
            heard.partition(&p1, Timestamp::from_ms(ms));
            assert_eq!(unobserved(&heard, ms).len(), 2, "{ms}");
        }
        let later = unobserved(&heard, back + RETURN_MS);
        assert_eq!(later, BTreeSet::from([p2.clone()]));
    }
}
