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

use control_presence::Presence;
use control_store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use time::{HEARD_MAX, ROUND};

/// Starts all duties; they end when `stop` is cancelled.
pub fn spawn(tasks: &mut JoinSet<()>, store: Store, presence: Presence, stop: CancellationToken) {
    tasks.spawn(time::run(store, presence, stop));
}
