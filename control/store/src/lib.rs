//! The replicated store: openraft over a log of its own, RocksDB under the state machine.
//!
//! A write is a command. [`Store::propose`] writes it to the log, syncs it on a majority, applies it to
//! the state in memory, and only then acknowledges it. Reads are linearizable: they see every write
//! acknowledged before them. [`Store::watch`] streams the changes.
//!
//! A data directory contains `NODE`, which names its cluster and node, `log/` with the Raft log (see
//! `wal`), `state/` with the state as of some entry (see `engine`), and `snapshots/`.
//!
//! Invariants:
//! - acknowledged means synced by a majority; a failed sync ends the process;
//! - the log is never truncated where an acknowledged entry could be, and never purged before the
//!   state that contains it is durable;
//! - every node applies the same bytes in the same order;
//! - every queue has a bound; a full one is backpressure or refuses with [`StoreError::Busy`].
//!
//! Entry point: [`Store::open`].

mod access;
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
mod forward;
mod identity;
mod log_store;
mod machine;
mod members;
mod membership;
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
pub use operations::{check_covers, coverers};
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
pub use watch::{Changes, Compacted, Revision, Subscription, WATCH_HISTORY_CHANGES, WatchEvent};
