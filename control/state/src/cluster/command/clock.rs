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
    /// Time at which the proposing leader began to receive reports. Silence before it proves
    /// nothing.
    pub listening_since: Timestamp,
    /// Partitions that are cut off. Their machines are not judged by their silence.
    pub unobserved: BTreeSet<PartitionId>,
    /// Last heartbeat of each machine that the leader heard and did not write to the log, by its
    /// clock.
    pub heard: BTreeMap<MachineId, Timestamp>,
    /// Id of the control node whose clock gives the time. 0 means unknown.
    pub node: u64,
}
