//! Errors of the store, told apart by the reaction that the caller has.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::EngineError;
use crate::snapshot::SnapshotError;
use crate::wal::WalError;

/// The store cannot carry a request out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum StoreError {
    /// This node does not lead; nothing was done.
    #[error("this node does not lead; {}", known(.leader))]
    NotLeader {
        /// The leader; `None` if none is known.
        leader: Option<u64>,
    },
    /// A queue is full (backpressure, `RESOURCE_EXHAUSTED`). Nothing was done; try again later.
    #[error("the store is busy: {waiting} requests wait already")]
    Busy {
        /// The bound of the queue.
        waiting: usize,
    },
    /// The command is too large. Nothing was done.
    #[error("a command of {bytes} bytes is larger than the {max} that are allowed")]
    TooLarge {
        /// Size of the command, bytes.
        bytes: usize,
        /// Largest size allowed, bytes.
        max: usize,
    },
    /// The write was sent, but its outcome is unknown: it may have taken effect, or still take
    /// effect. Read before trying again, or try again with the same idempotency key.
    #[error("the outcome of the write is unknown: {reason}")]
    OutcomeUnknown {
        /// The event that left the outcome unknown.
        reason: Cow<'static, str>,
    },
    /// No quorum answered in time. Nothing is known to be wrong with the data.
    #[error("no majority of the cluster answered in time")]
    NoQuorum,
    /// The store was shut down.
    #[error("the store is shut down")]
    ShutDown,
    /// The node stopped after a fatal error; its log has the cause.
    #[error("the store stopped after a fatal error: {0}")]
    Fatal(String),
}

fn known(leader: &Option<u64>) -> String {
    match leader {
        Some(node) => format!("node {node} does"),
        None => "no leader is known".to_owned(),
    }
}

impl StoreError {
    /// The leader answered with another kind of answer than the request has: a bug.
    pub(crate) fn unexpected_answer() -> Self {
        Self::Fatal("the leader answered another question than was asked".to_owned())
    }
}

/// A proposed command took no effect, or its effect is not known.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError<J: std::error::Error + 'static> {
    /// The state machine refused the command; the state is unchanged.
    #[error(transparent)]
    Rejected(J),
    /// The store could not carry it out; see [`StoreError`] for what that says of the effect.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file operation failed.
    #[error("{action} {path}")]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// Another process has locked the directory.
    #[error("the data directory {path} is in use by another process")]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// The directory belongs to another cluster or node.
    #[error(
        "the data directory {path} belongs to {found}, but this node is configured as {wanted}. \
         Use that configuration, or another directory"
    )]
    Foreign {
        /// The data directory.
        path: PathBuf,
        /// The node and cluster that it belongs to.
        found: String,
        /// The node and cluster of the configuration.
        wanted: String,
    },
    /// The file `NODE`, which names node and cluster of the directory, cannot be read.
    #[error("{path} is unreadable: {reason}. Restore it from a backup of the data directory")]
    Identity {
        /// The file.
        path: PathBuf,
        /// The corruption found.
        reason: String,
    },
    /// The Raft log is damaged or belongs to another node.
    #[error(transparent)]
    Log(#[from] WalError),
    /// The state cannot be opened. It can be rebuilt from snapshot and log.
    #[error(
        "the state engine refused to open. The raft log and the newest snapshot are whole in \
         themselves: move the directory `state` away and start again to build it anew"
    )]
    Engine(#[from] EngineError),
    /// The snapshots cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The log lacks entries that the state contains.
    #[error(
        "the state in {path} contains log entry {applied}, but the raft log ends at entry {last}: \
         acknowledged writes are missing from the log. Restore the whole data directory from one \
         backup; never mix `log` and `state` of different times"
    )]
    LogBehindState {
        /// The data directory.
        path: PathBuf,
        /// Index of the last entry in the state.
        applied: u64,
        /// Index of the last entry in the log, or `none`.
        last: String,
    },
    /// Raft refused its configuration or its storage.
    #[error("raft cannot start: {0}")]
    Raft(String),
    /// The node did not become ready in time.
    #[error("the store is not ready after {waited_ms} ms: {state}")]
    NotReady {
        /// Time waited, milliseconds.
        waited_ms: u128,
        /// State of Raft at the end.
        state: String,
    },
}
