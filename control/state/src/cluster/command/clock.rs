//! Commands about the cluster's time.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{MachineId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

/// See [`Op::AcceptTime`](crate::Op::AcceptTime).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptTime {
    /// The time that the operator's own clock shows.
    pub time: Timestamp,
}

/// See [`Op::Tick`](crate::Op::Tick).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tick {
    /// Since when this leader listens: silence before it proves nothing.
    pub listening_since: Timestamp,
    /// Partitions that are cut off: their machines are not judged.
    pub unobserved: BTreeSet<PartitionId>,
    /// Heartbeats that the leader kept in memory, its own time.
    pub heard: BTreeMap<MachineId, Timestamp>,
    /// The control node whose clock it goes by.
    pub node: u64,
}
