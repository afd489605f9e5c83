//! The contract between Raft and its log.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::ops::Range;

use openraft::storage::IOFlushed;

use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

/// A durable log of entries and votes.
///
/// A change is visible to readers when it is called, and durable before the caller is answered.
/// Changes become durable in the order of the calls: Raft relies on a vote being durable before
/// entries of its term. The future of [`append`](Self::append) ends when the entries are readable;
/// `done` is called after the sync.
pub(crate) trait LogStore: Debug + Send + Sync + 'static {
    /// Returns the last purged entry.
    fn purged(&self) -> Option<LogId>;
    /// Returns the last entry, or the last purged one if the log is empty.
    fn last(&self) -> Option<LogId>;
    /// Returns the last saved vote.
    fn vote(&self) -> Option<Vote>;
    /// Returns the last saved commit point; after a crash it may be an older one.
    fn committed(&self) -> Option<LogId>;
    /// Reads the entries of `range` that the log has.
    fn read(&self, range: Range<u64>) -> impl Future<Output = io::Result<Vec<Entry>>> + Send;
    /// Adds entries, which must follow the last one. `done` is called when they are durable.
    fn append(
        &self,
        entries: Vec<Entry>,
        done: IOFlushed<TypeConfig>,
    ) -> impl Future<Output = io::Result<()>> + Send;
    /// Saves the vote; durable when the future ends. A vote that a crash forgets could be given
    /// twice in one term, which elects two leaders.
    fn save_vote(&self, vote: Vote) -> impl Future<Output = io::Result<()>> + Send;
    /// Saves the commit point. It is not synced: an older one after a crash is legal.
    fn save_committed(
        &self,
        committed: Option<LogId>,
    ) -> impl Future<Output = io::Result<()>> + Send;
    /// Removes the entries after `last`, which another leader has replaced, `None` all of them;
    /// durable when the future ends.
    fn truncate_after(&self, last: Option<LogId>) -> impl Future<Output = io::Result<()>> + Send;
    /// Removes the entries up to `upto`; durable when the future ends. The caller has made sure
    /// that the state on disk contains them.
    fn purge(&self, upto: LogId) -> impl Future<Output = io::Result<()>> + Send;
}
