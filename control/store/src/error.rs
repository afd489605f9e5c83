//! What can go wrong, told apart by what the caller can do about it.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::EngineError;
use crate::snapshot::SnapshotError;
use crate::wal::WalError;

/// The store cannot answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum StoreError {
    /// Another node leads; ask it.
    #[error("this node does not lead; {}", known(.leader))]
    NotLeader {
        /// Who leads, if known.
        leader: Option<u64>,
    },
    /// A queue is full: RESOURCE_EXHAUSTED. Nothing was done; try again later.
    #[error("the store is busy: {waiting} requests wait already")]
    Busy {
        /// The bound that was reached.
        waiting: usize,
    },
    /// The command is larger than a command may be. Nothing was done.
    #[error("a command of {bytes} bytes is larger than the {max} that are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// The write was sent, but its fate is not known: it may take effect or not. Read before
    /// trying again, or try again with the same idempotency key.
    #[error("the outcome of the write is unknown: {reason}")]
    OutcomeUnknown {
        /// What happened.
        reason: Cow<'static, str>,
    },
    /// No majority answered in time. Nothing is known to be wrong with the data.
    #[error("no majority of the cluster answered in time")]
    NoQuorum,
    /// The store was shut down.
    #[error("the store is shut down")]
    ShutDown,
    /// The node stopped itself after an error that it cannot survive; its log has the cause.
    #[error("the store stopped after a fatal error: {0}")]
    Fatal(String),
}

fn known(leader: &Option<u64>) -> String {
    match leader {
        Some(node) => format!("node {node} does"),
        None => "no leader is known".to_owned(),
    }
}

/// A proposed command took no effect, or its effect is not known.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError<J: std::error::Error + 'static> {
    /// The state machine refused the command; the state is unchanged.
    #[error(transparent)]
    Rejected(J),
    /// The store could not carry it out.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file operation failed.
    #[error("{action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Another process has the directory.
    #[error("the data directory {path} is in use by another process")]
    InUse {
        /// Which directory.
        path: PathBuf,
    },
    /// The directory belongs to another cluster or node.
    #[error(
        "the data directory {path} belongs to {found}, but this node is configured as {wanted}. \
         Use that configuration, or another directory"
    )]
    Foreign {
        /// Which directory.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Who asked.
        wanted: String,
    },
    /// Another version wrote the directory, in a format that this one does not read.
    #[error(
        "data directory {path} has format {found}, this metalmeshd reads format {known}: start it \
         with the metalmeshd that wrote it, or move the directory away and set up the cluster anew"
    )]
    Format {
        /// The data directory.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format that this program reads.
        known: u32,
    },
    /// The file that says whose directory this is cannot be read.
    #[error("{path} is unreadable: {reason}. Restore it from a backup of the data directory")]
    Identity {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The raft log is damaged or not ours.
    #[error(transparent)]
    Log(#[from] WalError),
    /// The state cannot be opened. It can be made again from snapshot and log.
    #[error(
        "the state engine refused to open. The raft log and the newest snapshot are whole in \
         themselves: move the directory `state` away and start again to build it anew"
    )]
    Engine(#[from] EngineError),
    /// The snapshots cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The log lost entries that the state has.
    #[error(
        "the state in {path} contains log entry {applied}, but the raft log ends at entry {last}: \
         acknowledged writes are missing from the log. Restore the whole data directory from one \
         backup; never mix `log` and `state` of different times"
    )]
    LogBehindState {
        /// The data directory.
        path: PathBuf,
        /// Last entry in the state.
        applied: u64,
        /// Last entry in the log, as text: there may be none.
        last: String,
    },
    /// Raft refused its configuration or its storage.
    #[error("raft cannot start: {0}")]
    Raft(String),
    /// The node did not become ready in time.
    #[error("the store is not ready after {waited_ms} ms: {state}")]
    NotReady {
        /// How long it was waited for.
        waited_ms: u128,
        /// What Raft was doing.
        state: String,
    },
}
