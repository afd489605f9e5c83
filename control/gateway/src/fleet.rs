//! Who was heard when: in memory, never in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use proto_types::{MachineId, PartitionId, Timestamp};

/// A partition none of whose agents and machines said anything for so long is cut off,
/// milliseconds. Core agents report each 10 s.
const UNOBSERVED_AFTER_MS: u64 = 60_000;
/// After a partition was cut off its machines have so long to come back before their silence says
/// anything, milliseconds. They dial again after [`proto_link::limits::BACKOFF_MAX`] at most.
const RETURN_MS: u64 = 60_000;
/// Machines that are remembered; the longest silent go first.
const MACHINES_MAX: usize = 200_000;

/// What the sessions of this node know of the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Since when this node listens.
    pub listening_since: Timestamp,
    /// When each machine was last heard.
    pub heard: BTreeMap<MachineId, Timestamp>,
    /// Partitions none of whose agents was heard lately, or that have only just come back: nothing
    /// in them can be judged.
    pub unobserved: BTreeSet<PartitionId>,
}

#[derive(Debug, Default)]
struct Heard {
    since: Timestamp,
    machines: BTreeMap<MachineId, Timestamp>,
    partitions: BTreeMap<PartitionId, Presence>,
}

/// When a partition was heard.
#[derive(Debug, Clone, Copy)]
struct Presence {
    last: Timestamp,
    /// Since when without a gap.
    since: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Ears {
    heard: Mutex<Heard>,
}

impl Ears {
    pub(crate) fn new(since: Timestamp) -> Self {
        let ears = Self {
            heard: Mutex::default(),
        };
        ears.begin(since);
        ears
    }

    /// Begins anew: this node serves the sessions from now on, and what was heard before says
    /// nothing on who is silent.
    pub(crate) fn begin(&self, since: Timestamp) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        *heard = Heard {
            since,
            ..Heard::default()
        };
    }

    /// An agent of this partition said something.
    pub(crate) fn partition(&self, id: &PartitionId, now: Timestamp) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let began = heard.since;
        // Who is heard soon after this node began to listen has not been away.
        let new = Presence {
            last: began,
            since: began,
        };
        let presence = heard.partitions.entry(id.clone()).or_insert(new);
        if now.since_ms(presence.last) > UNOBSERVED_AFTER_MS {
            presence.since = now;
        }
        presence.last = now;
    }

    /// A machine said something.
    pub(crate) fn machine(&self, id: MachineId, now: Timestamp) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.machines.insert(id, now);
        if heard.machines.len() > MACHINES_MAX {
            let oldest = heard
                .machines
                .iter()
                .min_by_key(|(_, at)| **at)
                .map(|(id, _)| *id);
            oldest.and_then(|id| heard.machines.remove(&id));
        }
    }

    /// What is known now of these partitions.
    pub(crate) fn fleet<'a>(
        &self,
        partitions: impl Iterator<Item = &'a PartitionId>,
        now: Timestamp,
    ) -> Fleet {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = |id: &&PartitionId| {
            let Some(presence) = heard.partitions.get(*id) else {
                return now.since_ms(heard.since) > UNOBSERVED_AFTER_MS;
            };
            let is_back = presence.since > heard.since;
            now.since_ms(presence.last) > UNOBSERVED_AFTER_MS
                || (is_back && now.since_ms(presence.since) < RETURN_MS)
        };
        Fleet {
            listening_since: heard.since,
            heard: heard.machines.clone(),
            unobserved: partitions.filter(silent).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_partition_is_unobserved() {
        let ears = Ears::new(Timestamp::from_ms(1000));
        let (p1, p2): (PartitionId, PartitionId) = ("p1".parse().unwrap(), "p2".parse().unwrap());
        let fleet = |now| {
            ears.fleet([&p1, &p2].into_iter(), Timestamp::from_ms(now))
                .unobserved
        };
        // A node that just began has heard nobody yet.
        assert!(fleet(61_000).is_empty());
        ears.partition(&p1, Timestamp::from_ms(30_000));
        assert_eq!(fleet(61_001), BTreeSet::from([p2.clone()]));
        assert_eq!(fleet(90_001).len(), 2);
        // Back after an hour: its machines get the time to say something.
        let back = 3_700_000;
        for ms in [back, back + 30_000, back + 59_999] {
            ears.partition(&p1, Timestamp::from_ms(ms));
            assert_eq!(fleet(ms).len(), 2, "{ms}");
        }
        assert_eq!(fleet(back + RETURN_MS), BTreeSet::from([p2.clone()]));
    }
}
