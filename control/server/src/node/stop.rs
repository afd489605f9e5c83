//! The order in which a node stops: it hands leadership over while it still serves, then its parts end.

use std::sync::{Arc, OnceLock};

use control_store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Passes the wish to stop on to the parts of a node.
pub(super) struct NodeStop {
    /// Cancelled when the parts are to end. A part that fails cancels it as well.
    pub(super) parts: CancellationToken,
    /// The store. Empty until it is open: before that there is no leadership to hand over.
    store: Arc<OnceLock<Store>>,
    /// Waits for the wish; ends with this object.
    _tasks: JoinSet<()>,
}

impl NodeStop {
    /// Waits for `asked` in the background.
    pub(super) fn spawn(asked: CancellationToken) -> Self {
        let (parts, store) = (CancellationToken::new(), Arc::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(pass_on(asked, Arc::clone(&store), parts.clone()));
        Self {
            parts,
            store,
            _tasks: tasks,
        }
    }

    /// From now on the parts end after leadership was handed over.
    pub(super) fn opened(&self, store: &Store) {
        self.store.get_or_init(|| store.clone());
    }
}

async fn pass_on(asked: CancellationToken, store: Arc<OnceLock<Store>>, parts: CancellationToken) {
    asked.cancelled().await;
    if let Some(store) = store.get()
        && let Some(node) = store.leave_leadership().await
    {
        tracing::info!(node, "leadership was handed over before the stop");
    }
    parts.cancel();
}
