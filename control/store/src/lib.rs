//! The replicated store: openraft over a log of its own, RocksDB under the state in memory.
//!
//! A write is a command. [`Store::propose`] has the leader write it to the log, and answers once a
//! majority has synced it and the leader has applied it. Reads see every write that was
//! acknowledged before them. [`Store::watch`] announces changes.
//!
//! A data directory holds `NODE` (see `identity`), `log/` (`wal`), `state/` (`engine`) and
//! `snapshots/` (`snapshot`). Above them are, from the bottom, `applied_state`, `applier`,
//! `snapshot_transfer`, `raft` and `store`.
//!
//! Invariants:
//! - A write is acknowledged only after a majority of the voters has synced it. A failed write or
//!   sync of the log ends the process.
//! - Entries, votes, truncations and purges become durable in the order of Raft's calls.
//! - Recovery cuts only bytes that were never synced. Any other damage refuses the start.
//! - A node applies an entry after its own log has synced it, so that the state on disk is never
//!   ahead of the log. Snapshots from a leader are the one exception.
//! - Every node applies the bytes of the log in the same order. An entry that cannot be read or
//!   applied stops the node; none is left out.
//! - Rows and the id of their entry are written in one batch: after a crash the state on disk is
//!   complete as of one entry, and replay resumes behind it.
//! - The log is purged only up to entries that the state on disk contains.
//! - A snapshot gets its name after its content is durable; older ones are removed after that.
//! - Every queue is bounded. A full one refuses callers with [`StoreError::Busy`], and is
//!   backpressure to Raft.
//!
//! Entry point: [`Store::open`].

mod access;
mod applied_state;
mod applier;
mod call_end;
mod channel;
mod clock;
mod codec;
mod config;
mod deadline;
mod disk;
mod engine;
mod error;
mod facade_operations;
mod forward;
mod identity;
mod leader_question;
mod log_store;
mod machine;
mod members;
mod membership;
mod method_operations;
mod metrics;
mod no_peers;
mod open;
mod operations;
mod peer_refusal;
mod platform;
mod proposal;
mod proposer;
mod raft;
mod raft_types;
mod random;
mod read_index;
mod refusals;
mod restore;
mod rounds;
#[cfg(feature = "sim")]
pub mod sim;
mod snapshot;
mod snapshot_transfer;
mod store;
mod tables;
#[cfg(test)]
mod tests;
mod trail;
mod transfers;
mod transport;
mod trial;
mod wal;
mod watch;
mod wire;

pub use call_end::CallEnd;
pub use channel::{Channel, FRAME_BYTES_MAX};
pub use clock::{Clock, ManualClock, SystemClock};
pub use codec::StoreCodecError;
pub use config::{
    KEEP_ENTRIES, PROPOSE_TIMEOUT, READ_TIMEOUT, READY_TIMEOUT, SNAPSHOT_EVERY_ENTRIES, StartMode,
    StoreConfig,
};
pub use engine::EngineError;
pub use error::{OpenError, ProposeError, StoreError};
pub use identity::{DirectoryOwner, claimed};
pub use machine::{ApplyOutcome, StateMachine, StateRow, decode_row, encode_row};
pub use membership::{
    ClusterView, MemberChange, MemberState, MembershipError, PROMOTE_LAG_ENTRIES_MAX,
};
pub use metrics::Metrics;
pub use no_peers::NoPeers;
pub use operations::{check_covers, coverers, facade_operations};
pub use peer_refusal::PeerRefusal;
pub use platform::NodePlatform;
pub use proposer::{BATCH_BYTES_MAX, BATCH_COMMANDS_MAX, COMMAND_BYTES_MAX, PROPOSALS_MAX};
pub use restore::{RestoreError, StateExport, StateRestore};
pub use snapshot::SnapshotError;
pub use store::Store;
pub use trail::{AuditTrail, AuditWriter};
pub use transfers::SnapshotBytes;
pub use transport::{ClusterMember, Lane, Transport};
pub use wal::WalError;
pub use wal::syncs::{SYNC_BOUNDS_US, SyncTimes};
pub use watch::{ChangeEvent, Changes, Compacted, Revision, Subscription, WATCH_HISTORY_CHANGES};
