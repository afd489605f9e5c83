//! What a store is opened with.

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

/// Log entries between two snapshots.
pub const SNAPSHOT_EVERY_ENTRIES: u64 = 10_000;
/// Log entries kept behind a snapshot, so that a member that was away for a moment needs no copy.
pub const KEEP_ENTRIES: u64 = 1000;
/// How long a proposal may take before its outcome is called unknown.
pub const PROPOSE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a linearizable read waits for a majority.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the start waits for this node to lead and to have applied its log.
pub const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// What a new data directory becomes. One that is in use stays what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// A cluster of one node, with an id of its own.
    Form,
    /// A part of the cluster with this id, once its leader has added the node.
    Join(Uuid),
}

/// What a store is opened with.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The data directory; made if absent, mode 0700.
    pub dir: PathBuf,
    /// This node in the cluster. A node that lost its directory needs a new one.
    pub node_id: u64,
    /// Name of the cluster; a directory stays with the name it was made under.
    pub cluster: String,
    /// What a new data directory becomes.
    pub begin: StartMode,
    /// Where other members reach this node, as its transport understands it. May be empty as
    /// long as there are no other members.
    pub peer_address: String,
    /// The way to the other members.
    pub transport: Arc<dyn Transport>,
    /// Bytes per second at which snapshots are sent to other members; `None` does not limit.
    pub snapshot_bytes_per_second: Option<u64>,
    /// Bytes of one piece of a snapshot on its way to a member.
    pub snapshot_piece_bytes: usize,
    /// Tells the time that commands carry.
    pub clock: Arc<dyn Clock>,
    /// Log entries between two snapshots.
    pub snapshot_every_entries: u64,
    /// Log entries kept behind a snapshot.
    pub keep_entries: u64,
    /// Bytes of one file of the log.
    pub segment_bytes: usize,
    /// Disk and threads; the machine's but in a simulation.
    pub platform: NodePlatform,
    /// Changes kept in memory for watches that go on where they were.
    pub watch_history: usize,
}

impl StoreConfig {
    /// The usual settings for a node that keeps its data in `dir`.
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
