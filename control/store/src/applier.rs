//! The state machine side of openraft: applies committed entries, makes and installs snapshots.

use std::io;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use openraft::OptionalSend;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine, Snapshot};

use crate::applied_state::AppliedState;
use crate::machine::StateMachine;
use crate::raft_types::{LogId, SnapshotMeta, StoredMembership, TypeConfig};
use crate::snapshot::SnapshotDir;
use crate::wal::durable::DurableIndex;

/// [`AppliedState`] as openraft's state machine.
#[derive(Debug)]
pub(crate) struct Applier<M: StateMachine> {
    pub(crate) shared: Arc<AppliedState<M>>,
    /// Durable end of this node's own log.
    pub(crate) log: Arc<DurableIndex>,
}

impl<M: StateMachine> RaftStateMachine<TypeConfig> for Applier<M> {
    type SnapshotData = SnapshotDir;
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let progress = self.shared.progress();
        Ok((progress.last_applied, progress.membership))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            // A majority without this node may commit an entry before this node's own sync of it.
            // RocksDB may flush at any moment, and after a power failure the state would then hold
            // an entry that the log lacks: the start refuses such a directory.
            self.log.wait(entry.log_id.index).await;
            let applied = self.shared.apply(entry)?;
            // After the commit to the state engine and the publication to watches: a caller that
            // has its answer sees its own write.
            if let Some(responder) = responder {
                responder.send(applied);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self::SnapshotBuilder {
        Self {
            shared: self.shared.clone(),
            log: self.log.clone(),
        }
    }

    async fn install_snapshot(
        &mut self,
        _meta: &SnapshotMeta,
        snapshot: SnapshotDir,
    ) -> Result<(), io::Error> {
        // On the thread pool: it rewrites the whole state, and Raft must still answer heartbeats.
        let shared = self.shared.clone();
        let install = move || shared.install(&snapshot);
        self.shared.threads.blocking(install).await?
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<openraft::alias::SnapshotOf<TypeConfig, SnapshotDir>>, io::Error> {
        let newest = self.shared.snapshots.newest()?;
        Ok(newest.map(|(meta, snapshot)| Snapshot { meta, snapshot }))
    }
}

impl<M: StateMachine> RaftSnapshotBuilder<TypeConfig> for Applier<M> {
    type SnapshotData = SnapshotDir;

    async fn build_snapshot(
        &mut self,
    ) -> Result<openraft::alias::SnapshotOf<TypeConfig, SnapshotDir>, io::Error> {
        let shared = self.shared.clone();
        let make = move || shared.make_snapshot();
        let (meta, snapshot) = self.shared.threads.blocking(make).await??;
        tracing::info!(
            index = meta.last_log_id.map_or(0, |id| id.index),
            path = %snapshot.0.display(),
            "made a snapshot"
        );
        Ok(Snapshot { meta, snapshot })
    }
}
