//! How Raft is tuned here, and why.

use std::sync::Arc;

use openraft::{Config, ConfigError, SnapshotPolicy};

/// Entries sent to a follower in one message.
const PAYLOAD_ENTRIES_MAX: u64 = 256;
/// Messages that may wait for Raft's core; more makes callers wait.
const API_QUEUE_MAX: u64 = 4096;
/// Events from log, state machine and network that may wait for Raft's core.
const NOTIFICATION_QUEUE_MAX: u64 = 16_384;
/// Commands that may wait for the state machine.
const APPLY_QUEUE_MAX: u64 = 1024;

/// The settings of one node.
///
/// Timeouts are long against CPU starvation, not against the network: a node that waits a second
/// for a core must not lose its leadership. A node alone does not wait for them, it is asked to
/// elect itself at the start.
pub(crate) fn config(
    cluster: &str,
    snapshot_every: u64,
    keep: u64,
) -> Result<Arc<Config>, ConfigError> {
    let config = Config {
        cluster_name: cluster.to_owned(),
        heartbeat_interval: 200,
        election_timeout_min: 700,
        // Also the lease: followers wait for this and the timeout before they elect another.
        election_timeout_max: 1200,
        install_snapshot_timeout: 60_000,
        max_payload_entries: PAYLOAD_ENTRIES_MAX,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(snapshot_every),
        max_in_snapshot_log_to_keep: keep,
        api_channel_size: Some(API_QUEUE_MAX),
        notification_channel_size: Some(NOTIFICATION_QUEUE_MAX),
        state_machine_channel_size: Some(APPLY_QUEUE_MAX),
        // A node that was cut off must not unseat the leader when it comes back.
        enable_pre_vote: Some(true),
        // A leader that restarts stands for election again: its term then changes, and with it
        // the fence on orders to hardware.
        enable_leader_restore: Some(false),
        ..Config::default()
    };
    config.validate().map(Arc::new)
}
