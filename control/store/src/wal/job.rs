//! Jobs of the flusher, and the round of jobs that share one sync.

use openraft::storage::IOFlushed;
use tokio::sync::oneshot;

use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

/// A change of the log that the flusher makes durable.
pub(crate) enum LogJob {
    /// Adds entries at the end.
    Append(Vec<Entry>, IOFlushed<TypeConfig>),
    /// Saves the vote.
    Vote(Vote, oneshot::Sender<()>),
    /// Removes the entries after this one; `None` removes all.
    Truncate(Option<LogId>, oneshot::Sender<()>),
    /// Removes the entries up to this one.
    Purge(LogId, oneshot::Sender<()>),
    /// Saves the commit point, without a sync: after a crash an older one is legal, and Raft finds
    /// the newer one again.
    Committed(Option<LogId>),
}

/// The jobs that share one sync.
#[derive(Default)]
pub(crate) struct SyncRound {
    /// `true` if a job of the round must be synced.
    pub(crate) sync: bool,
    /// Durable end of the log after the sync.
    pub(crate) next: u64,
    pub(crate) waiters: Vec<SyncWaiter>,
    /// The latest commit point of the round; `None` if the round has none.
    pub(crate) committed: Option<Option<LogId>>,
    /// `true` if segments may be deleted after the sync.
    pub(crate) purged: bool,
}

/// A caller to be answered after the sync.
pub(crate) enum SyncWaiter {
    Append(IOFlushed<TypeConfig>),
    Other(oneshot::Sender<()>),
}

impl SyncWaiter {
    /// Tells the caller that its job is durable.
    pub(crate) fn answer(self) {
        match self {
            Self::Append(done) => done.io_completed(Ok(())),
            // The caller may have dropped its future.
            Self::Other(done) => drop(done.send(())),
        }
    }
}
