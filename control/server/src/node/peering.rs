//! The tasks of the link to the peers. They end after all other parts of a node.

use control_peers::PeerLink;
use control_store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The tasks of the link. They have their own token: with that of the parts they would end while calls
/// are still draining, and a follower could not forward the writes of those calls to the leader.
#[derive(Default)]
pub(super) struct Peering {
    /// Ends the tasks.
    pub(super) stop: CancellationToken,
    pub(super) tasks: JoinSet<()>,
}

impl Peering {
    /// Serves the peers. A node that the cluster removed cancels `parts`: it must not go on serving an
    /// ever older state.
    pub(super) fn start(&mut self, link: &PeerLink, store: &Store, parts: &CancellationToken) {
        self.tasks
            .spawn(link.clone().run(store.clone(), self.stop.clone()));
        let (removed, stop, parts) = (link.removed(), self.stop.clone(), parts.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = removed.cancelled() => parts.cancel(),
            }
        });
    }

    /// Ends the tasks, and waits for them.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
