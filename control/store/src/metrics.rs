//! State of a node for monitoring.

use openraft::RaftMetrics;

use crate::raft_types::TypeConfig;
use crate::transfers::SnapshotBytes;
use crate::wal::syncs::SyncTimes;

/// State of a node at one moment. Log positions are indexes of entries; `None` means no entry yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// This node.
    pub node_id: u64,
    /// `leader`, `follower`, `candidate` or `learner`.
    pub role: String,
    /// The leader; `None` if none is known.
    pub leader: Option<u64>,
    /// The current term.
    pub term: u64,
    /// Last entry in the log.
    pub last_log: Option<u64>,
    /// Last entry that this node knows to be committed.
    pub committed: Option<u64>,
    /// Last entry in the state.
    pub applied: Option<u64>,
    /// Last entry in the newest snapshot.
    pub snapshot: Option<u64>,
    /// Last entry that was purged from the log.
    pub purged: Option<u64>,
    /// Number of log segments.
    pub log_segments: usize,
    /// Number of proposals that wait for the proposer.
    pub proposals_waiting: usize,
    /// Bytes of snapshots sent and received since the start.
    pub snapshot_bytes: SnapshotBytes,
    /// Durations of log syncs.
    pub syncs: SyncTimes,
}

impl Metrics {
    pub(crate) fn of(
        raft: &RaftMetrics<TypeConfig>,
        waiting: usize,
        segments: usize,
        snapshot_bytes: SnapshotBytes,
        syncs: SyncTimes,
    ) -> Self {
        Self {
            node_id: raft.id,
            role: format!("{:?}", raft.state).to_lowercase(),
            leader: raft.current_leader,
            term: raft.current_term,
            last_log: raft.last_log_index,
            committed: raft.local_committed.map(|id| id.index),
            applied: raft.last_applied.map(|id| id.index),
            snapshot: raft.snapshot.map(|id| id.index),
            purged: raft.purged.map(|id| id.index),
            log_segments: segments,
            proposals_waiting: waiting,
            snapshot_bytes,
            syncs,
        }
    }
}
