//! The seam between openraft and a log: [`LogStore`] says what a log must do, [`RaftLog`] shows
//! it to openraft.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use openraft::OptionalSend;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};

use super::types::{Entry, LogId, TypeConfig, Vote};

/// A durable log of entries, with the vote in the same order as the entries.
///
/// Changes are visible to readers at once, and durable before the caller is told; calls take
/// effect on disk in the order of the calls. The future of [`append`](Self::append) ends when the
/// entries are readable; `done` is told after the sync.
pub(crate) trait LogStore: Debug + Send + Sync + 'static {
    /// The last entry that was purged.
    fn purged(&self) -> Option<LogId>;
    /// The last entry, or the last purged one when there is none.
    fn last(&self) -> Option<LogId>;
    /// The last saved vote.
    fn vote(&self) -> Option<Vote>;
    /// The last saved commit point; after a crash it may be an older one.
    fn committed(&self) -> Option<LogId>;
    /// The entries of `range` that there are.
    fn read(&self, range: Range<u64>) -> impl Future<Output = io::Result<Vec<Entry>>> + Send;
    fn append(
        &self,
        entries: Vec<Entry>,
        done: IOFlushed<TypeConfig>,
    ) -> impl Future<Output = io::Result<()>> + Send;
    fn save_vote(&self, vote: Vote) -> impl Future<Output = io::Result<()>> + Send;
    fn save_committed(
        &self,
        committed: Option<LogId>,
    ) -> impl Future<Output = io::Result<()>> + Send;
    fn truncate_after(&self, last: Option<LogId>) -> impl Future<Output = io::Result<()>> + Send;
    fn purge(&self, upto: LogId) -> impl Future<Output = io::Result<()>> + Send;
}

/// Asked before the log forgets entries up to an index: makes them durable in the state.
pub(crate) type PurgeGate = Arc<dyn Fn(u64) -> io::Result<()> + Send + Sync>;

/// A [`LogStore`] as openraft wants it.
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
        (self.gate)(upto.index)?;
        self.log.purge(upto).await
    }
}
