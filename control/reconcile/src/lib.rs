//! Background duties of the leader: what has to happen although nobody asks for it.
//!
//! Each duty has a module: `plan` is a pure function from what is to what is to be done, and a
//! loop does it. Every node runs the loops; only the one that leads acts.
//!
//! Invariant: a duty that finds nothing to do writes nothing, so that an idle cluster is silent.
//!
//! Entry point: [`spawn`].

mod tick;

use std::sync::Arc;

use control_state::Tables;
use control_store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use tick::{Observation, Observer, TICK_INTERVAL};

/// Starts every duty in the background, until `stop`.
pub fn spawn(
    store: Store<Tables>,
    observer: Arc<dyn Observer>,
    set: &mut JoinSet<()>,
    stop: CancellationToken,
) {
    set.spawn(tick::run(store, observer, stop));
}
