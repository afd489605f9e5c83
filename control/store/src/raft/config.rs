//! Settings of openraft, with the reason for each.

use std::sync::Arc;

use openraft::{Config, ConfigError, SnapshotPolicy};

/// Most entries in one append request. More are sent in further requests of the pipeline.
const PAYLOAD_ENTRIES_MAX: u64 = 256;
/// Most calls that wait for Raft's core. Beyond it callers wait (backpressure).
const API_QUEUE_MAX: u64 = 4096;
/// Most events from log, state machine and network that wait for Raft's core. Beyond it their
/// senders wait.
const NOTIFICATION_QUEUE_MAX: u64 = 16_384;
/// Most orders from Raft's core to the state machine that wait. Beyond it the core waits.
const APPLY_QUEUE_MAX: u64 = 1024;

/// The settings of one node.
///
/// Timeouts are long because of CPU starvation, not because of the network: a leader that gets no
/// core for half a second must not lose its leadership. A single node does not wait for them: it is
/// told to elect itself at the start.
pub(crate) fn config(
    cluster: &str,
    snapshot_every: u64,
    keep: u64,
) -> Result<Arc<Config>, ConfigError> {
    let config = Config {
        cluster_name: cluster.to_owned(),
        heartbeat_interval: 200,
        election_timeout_min: 700,
        // Also the length of the lease that a follower grants its leader: it votes for nobody else
        // within it, and forwards nothing after it.
        election_timeout_max: 1200,
        install_snapshot_timeout: 60_000,
        max_payload_entries: PAYLOAD_ENTRIES_MAX,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(snapshot_every),
        max_in_snapshot_log_to_keep: keep,
        api_channel_size: Some(API_QUEUE_MAX),
        notification_channel_size: Some(NOTIFICATION_QUEUE_MAX),
        state_machine_channel_size: Some(APPLY_QUEUE_MAX),
        // A node that was cut off must not unseat the leader when it comes back: it asks before it
        // raises its term, and the others, who hear the leader, say no.
        enable_pre_vote: Some(true),
        // A leader that restarts must be elected again and get a new term. Orders to hardware are
        // fenced by the term; with the old term, orders from before the crash would still be valid.
        enable_leader_restore: Some(false),
        ..Config::default()
    };
    config.validate().map(Arc::new)
}
