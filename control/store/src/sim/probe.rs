//! State of a node as the simulation checks it against the invariants.

use std::ops::Range;

use openraft::EntryPayload;
use openraft::async_runtime::WatchReceiver;

use crate::codec;
use crate::machine::StateMachine;
use crate::store::Store;

/// State of a node at one moment. Log positions are indexes of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The term of its vote.
    pub term: u64,
    /// The node that it voted for.
    pub voted_for: Option<u64>,
    /// `true` if it was elected in that term, as far as it knows.
    pub leads: bool,
    /// The leader, as far as it knows.
    pub leader: Option<u64>,
    /// Last entry that it knows to be committed, with its term.
    pub committed: Option<(u64, u64)>,
    /// Last entry in its state.
    pub applied: Option<u64>,
    /// Entry of the membership in its state.
    pub membership_at: Option<u64>,
    /// Voters of the newest membership that it knows.
    pub voters: Vec<u64>,
    /// Members of the newest membership that it knows.
    pub members: Vec<u64>,
    /// Last entry of its log.
    pub last: Option<u64>,
    /// Last entry that was purged from its log.
    pub purged: Option<u64>,
    /// Last entry in its newest snapshot.
    pub snapshot: Option<u64>,
    /// `true` if it is receiving a snapshot.
    pub is_receiving: bool,
}

/// An entry of a node's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedEntry {
    /// Index of the entry.
    pub index: u64,
    /// Term of the leader that made it.
    pub term: u64,
    /// Checksum of its content.
    pub digest: u32,
}

impl<M: StateMachine> Store<M> {
    /// State of this node now.
    pub fn probe(&self) -> Probe {
        let metrics = self.raft().metrics();
        let metrics = metrics.borrow_watched();
        let progress = self.shared().progress();
        let leader_id = metrics.vote.leader_id;
        let membership = metrics.membership_config.membership();
        Probe {
            term: leader_id.term,
            voted_for: Some(leader_id.voted_for),
            leads: metrics.vote.committed && leader_id.voted_for == metrics.id,
            leader: metrics.current_leader,
            committed: metrics
                .local_committed
                .map(|id| (id.index, id.committed_leader_id().term)),
            applied: progress.last_applied.map(|id| id.index),
            membership_at: progress.membership.log_id().map(|id| id.index),
            voters: membership.voter_ids().collect(),
            members: membership.nodes().map(|(id, _)| *id).collect(),
            last: metrics.last_log_index,
            purged: self.wal().purged_index(),
            snapshot: metrics.snapshot.map(|id| id.index),
            is_receiving: self.transfers().is_receiving(),
        }
    }

    /// The entries of `range` in its log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn logged(&self, range: Range<u64>) -> std::io::Result<Vec<LoggedEntry>> {
        let entries = self.wal().peek(range)?;
        let logged = entries.into_iter().map(|entry| {
            let payload = match &entry.payload {
                EntryPayload::Blank => Vec::new(),
                EntryPayload::Normal(batch) => codec::encode(batch)?,
                EntryPayload::Membership(membership) => codec::encode(membership)?,
            };
            Ok(LoggedEntry {
                index: entry.log_id.index,
                term: entry.log_id.committed_leader_id().term,
                digest: crc32fast::hash(&payload),
            })
        });
        logged.collect()
    }
}
