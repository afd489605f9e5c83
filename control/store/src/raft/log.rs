//! Adapts a [`LogStore`] to openraft.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::OptionalSend;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};

use crate::log_store::LogStore;
use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

/// Makes the entries up to an index durable in the state. Called before the log purges them.
pub(crate) type PurgeGate = Arc<dyn Fn(u64) -> io::Result<()> + Send + Sync>;

/// A [`LogStore`] with openraft's traits.
pub(crate) struct RaftLog<L> {
    log: Arc<L>,
    gate: PurgeGate,
}

impl<L> RaftLog<L> {
    pub(crate) fn new(log: Arc<L>, gate: PurgeGate) -> Self {
        Self { log, gate }
    }
}

impl<L> Clone for RaftLog<L> {
    fn clone(&self) -> Self {
        Self {
            log: self.log.clone(),
            gate: self.gate.clone(),
        }
    }
}

impl<L: LogStore> RaftLogReader<TypeConfig> for RaftLog<L> {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        self.log.read(start..end.max(start)).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.log.vote())
    }
}

impl<L: LogStore> RaftLogStorage<TypeConfig> for RaftLog<L> {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        Ok(LogState {
            last_purged_log_id: self.log.purged(),
            last_log_id: self.log.last(),
        })
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.log.save_vote(*vote).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        self.log.save_committed(committed).await
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.log.committed())
    }

    async fn append<I>(&mut self, entries: I, done: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.log.append(entries.into_iter().collect(), done).await
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.log.truncate_after(last).await
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        // The state may hold these entries in memory only. Purged before they are durable there,
        // they would be lost in a crash, though a majority acknowledged them.
        (self.gate)(upto.index)?;
        self.log.purge(upto).await
    }
}
