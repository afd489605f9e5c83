//! The contract between Raft and the log below it.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::ops::Range;

use openraft::storage::IOFlushed;

use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

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
    /// Appends `entries`, which follow the last one; `done` is called after the sync.
    fn append(
        &self,
        entries: Vec<Entry>,
        done: IOFlushed<TypeConfig>,
    ) -> impl Future<Output = io::Result<()>> + Send;
    /// Saves the vote; returns after the sync. A vote that a crash forgets could be given twice in one
    /// term, which elects two leaders.
    fn save_vote(&self, vote: Vote) -> impl Future<Output = io::Result<()>> + Send;
    /// Saves the commit point, without a sync: it only shortens the replay after a restart.
    fn save_committed(
        &self,
        committed: Option<LogId>,
    ) -> impl Future<Output = io::Result<()>> + Send;
    /// Removes the entries after `last`, which another leader has overwritten.
    fn truncate_after(&self, last: Option<LogId>) -> impl Future<Output = io::Result<()>> + Send;
    /// Forgets the entries up to `upto`, which the durable state contains.
    fn purge(&self, upto: LogId) -> impl Future<Output = io::Result<()>> + Send;
}
