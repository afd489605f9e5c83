//! Configuration of a store, and its defaults.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::{Clock, SystemClock};
use crate::no_peers::NoPeers;
use crate::platform::NodePlatform;
use crate::snapshot::file::PIECE_BYTES;
use crate::transport::Transport;
use crate::wal::segment::SEGMENT_BYTES;
use crate::watch::WATCH_HISTORY_CHANGES;

/// Default number of log entries between two snapshots.
pub const SNAPSHOT_EVERY_ENTRIES: u64 = 10_000;
/// Default number of log entries that are kept up to a snapshot. A member that lags by at most this
/// many entries catches up from the log and needs no snapshot.
pub const KEEP_ENTRIES: u64 = 1000;
/// Bound of a proposal's time; beyond it the outcome is reported as unknown.
pub const PROPOSE_TIMEOUT: Duration = Duration::from_secs(15);
/// Bound of a linearizable read's wait for a majority; beyond it the read fails.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Bound of the wait at the start of a single node, until it leads and has applied its log; beyond
/// it the start fails.
pub const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Membership of a new data directory. Ignored for a directory that is in use, except that another
/// cluster than its own is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// The node forms a new cluster with a new id, and is its only member.
    Form,
    /// The node joins the cluster with this id, once its leader has added it.
    Join(Uuid),
}

/// Configuration of a store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The data directory; created with mode 0700 if it is absent.
    pub dir: PathBuf,
    /// Id of this node in the cluster. A node that lost its directory needs a new id.
    pub node_id: u64,
    /// Name of the cluster; a directory of another cluster is refused.
    pub cluster: String,
    /// Membership of a new data directory.
    pub begin: StartMode,
    /// Address at which other members reach this node, in the form of its transport. May be empty
    /// while there are no other members.
    pub peer_address: String,
    /// Transport to the other members.
    pub transport: Arc<dyn Transport>,
    /// Rate limit over all snapshots that are sent to other members, bytes per second; `None` means
    /// no limit.
    pub snapshot_bytes_per_second: Option<u64>,
    /// Size of a piece of a snapshot that is sent, bytes; larger values are lowered to the default.
    pub snapshot_piece_bytes: usize,
    /// Clock of the timestamps in commands.
    pub clock: Arc<dyn Clock>,
    /// Number of log entries between two snapshots.
    pub snapshot_every_entries: u64,
    /// Number of log entries that are kept up to a snapshot.
    pub keep_entries: u64,
    /// Size of a segment of the log, bytes.
    pub segment_bytes: usize,
    /// Disk and threads: the machine's, except in a simulation.
    pub platform: NodePlatform,
    /// Number of changes that are kept in memory for watches that resume.
    pub watch_history: usize,
}

impl StoreConfig {
    /// The defaults for a node with its data in `dir`.
    pub fn new(dir: impl Into<PathBuf>, node_id: u64, cluster: impl Into<String>) -> Self {
        Self {
            dir: dir.into(),
            node_id,
            cluster: cluster.into(),
            begin: StartMode::Form,
            peer_address: String::new(),
            transport: Arc::new(NoPeers),
            snapshot_bytes_per_second: None,
            snapshot_piece_bytes: PIECE_BYTES,
            clock: Arc::new(SystemClock::default()),
            snapshot_every_entries: SNAPSHOT_EVERY_ENTRIES,
            keep_entries: KEEP_ENTRIES,
            segment_bytes: SEGMENT_BYTES,
            platform: NodePlatform::default(),
            watch_history: WATCH_HISTORY_CHANGES,
        }
    }
}
