//! The replicated store: openraft over our own log, RocksDB under the state machine.
//!
//! A write is a command. [`Store::propose`] has it written to the log, synced on a
//! majority, applied to the state in memory, and only then answers. Reads see every write
//! acknowledged before them. [`Store::watch`] tells who listens what changed.
//!
//! In a data directory: `NODE` says whose it is, `log/` holds the raft log (see `wal`),
//! `state/` the state as of some entry (see `engine`), `snapshots/` copies of it.
//!
//! Invariants:
//! - acknowledged means synced by a majority; a failed sync ends the process;
//! - the log is never cut where something acknowledged could be, and never purged before the
//!   state that contains it is durable;
//! - every node applies the same bytes in the same order;
//! - every queue has a bound, and a full one answers [`StoreError::Busy`].
//!
//! Entry point: [`Store::open`].

mod access;
mod applier;
mod call_end;
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
mod open;
mod operations;
mod platform;
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
pub use clock::{Clock, ManualClock, SystemClock};
pub use codec::CodecError;
pub use config::{
    KEEP_ENTRIES, PROPOSE_TIMEOUT, READ_TIMEOUT, READY_TIMEOUT, SNAPSHOT_EVERY_ENTRIES, StartMode,
    StoreConfig,
};
pub use engine::EngineError;
pub use error::{OpenError, ProposeError, StoreError};
pub use identity::{Claim, claimed};
pub use machine::{Outcome, Row, StateMachine, decode_row, encode_row};
pub use membership::{
    ClusterView, MemberChange, MemberState, MembershipError, PROMOTE_LAG_ENTRIES_MAX,
};
pub use metrics::Metrics;
pub use operations::{check_covers, coverers};
pub use platform::NodePlatform;
pub use proposer::{BATCH_BYTES_MAX, BATCH_COMMANDS_MAX, COMMAND_BYTES_MAX, PROPOSALS_MAX};
pub use restore::{RestoreError, StateExport, StateRestore};
pub use snapshot::SnapshotError;
pub use store::Store;
pub use trail::{AuditTrail, AuditWriter};
pub use transfers::SnapshotBytes;
pub use transport::{Channel, FRAME_BYTES_MAX, Lane, Member, NoPeers, Transport};
pub use wal::WalError;
pub use wal::syncs::{SYNC_BOUNDS_US, SyncTimes};
pub use watch::{Changes, Compacted, Event, Revision, Subscription, WATCH_HISTORY_CHANGES};
pub use wire::PeerRefusal;
