//! Background duties of the leader: what time alone asks for.
//!
//! Each duty has a pure `plan`, which looks at the state and says what is to be proposed, and an
//! `act`, which proposes it. Duties are level-triggered: what one round misses the next one does.
//!
//! Invariants:
//! - only the leader acts; a node that lost the lead has its proposals refused by the store;
//! - a round that would change nothing writes nothing to the log;
//! - a failed round is logged and the next one tries again, without a pile of retries.

mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use control_store::Store;
use proto_types::{MachineId, PartitionId, Timestamp};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use time::{HEARD_MAX, ROUND};

/// What the agents' sessions heard, which is in no log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// Since when this node listens.
    pub listening_since: Timestamp,
    /// When each machine was last heard.
    pub machines: BTreeMap<MachineId, Timestamp>,
    /// Partitions that are cut off: nothing in them can be judged.
    pub unobserved: BTreeSet<PartitionId>,
}

/// Who knows what was heard.
pub trait Listener: Debug + Send + Sync + 'static {
    /// What was heard up to now.
    fn heard(&self) -> Heard;
}

/// Starts all duties; they end when `stop` is cancelled.
pub fn spawn(
    tasks: &mut JoinSet<()>,
    store: Store,
    listener: Arc<dyn Listener>,
    stop: CancellationToken,
) {
    tasks.spawn(time::run(store, listener, stop));
}
