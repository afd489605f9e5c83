//! Linearizable reads on any node, by read index: a majority confirms that the leader still leads,
//! and the reader waits until its node has applied the entries that were committed by then.

use std::sync::Arc;

use openraft::ReadPolicy;
use openraft::errors::{Fatal, LinearizableReadError, RaftError};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::config::READ_TIMEOUT;
use crate::error::StoreError;
use crate::forward::{ForwardedAnswer, ForwardedRequest};
use crate::machine::StateMachine;
use crate::raft_types::TypeConfig;
use crate::rounds::{self, ROUND_PATIENCE, ReadWaiters};
use crate::store::Store;
use crate::watch::Revision;

impl<M: StateMachine> Store<M> {
    /// Reads a state that contains every write acknowledged before the call, on any node
    /// (linearizable).
    ///
    /// `read` runs under a lock that blocks writes: it should look and copy, not compute.
    ///
    /// # Errors
    /// When no majority of the cluster answers.
    pub async fn read<T>(&self, read: impl FnOnce(&M) -> T) -> Result<T, StoreError> {
        self.read_versioned(|state, _| read(state)).await
    }

    /// Like [`read`](Self::read), with the revision of what is read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_versioned<T>(
        &self,
        read: impl FnOnce(&M, Revision) -> T,
    ) -> Result<T, StoreError> {
        self.running()?;
        #[cfg(feature = "sim")]
        if crate::sim::has(crate::sim::Bug::SkippedReadIndex) {
            return self.read_local_versioned(read);
        }
        match timeout(READ_TIMEOUT, self.join_readers()).await {
            Ok(Ok(())) => self.read_local_versioned(read),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::NoQuorum),
        }
    }

    /// Waits until this node has every write acknowledged before the call, together with other
    /// readers.
    async fn join_readers(&self) -> Result<(), StoreError> {
        // Readers on the leader join the rounds that confirm its leadership directly, as the
        // barriers of its followers do. By way of `reads` they would wait for two rounds one after
        // the other.
        if self.is_leader() {
            match self.0.confirmations.join().await {
                Ok(_) => return Ok(()),
                Err(StoreError::NotLeader { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.0.reads.join().await
    }

    /// Waits until this node has applied every write acknowledged before the call. One call serves
    /// all readers of a round: see `rounds`.
    pub(crate) async fn barrier(&self) -> Result<(), StoreError> {
        let deadline = Instant::now() + READ_TIMEOUT;
        loop {
            let refused = if self.is_leader() {
                match self.0.confirmations.join().await {
                    Ok(_) => return Ok(()),
                    Err(refused @ StoreError::NotLeader { .. }) => refused,
                    Err(error) => return Err(error),
                }
            } else {
                match self.forward(ForwardedRequest::Barrier).await {
                    Ok(ForwardedAnswer::ReadAt(index)) => {
                        // The leader has confirmed the read index with a majority. The state of
                        // this node may lag behind it, and a read now would miss acknowledged
                        // writes.
                        let wait = self.0.raft.wait(Some(READ_TIMEOUT));
                        let applied = wait.applied_index_at_least(Some(index), "read").await;
                        self.running()?;
                        return applied.map(drop).map_err(|_| StoreError::NoQuorum);
                    }
                    Ok(_) => return Err(StoreError::unexpected_answer()),
                    Err(refused @ StoreError::NotLeader { .. }) => refused,
                    Err(error) => return Err(error),
                }
            };
            self.wait_for_leader(deadline, refused).await?;
        }
    }

    /// The read index: the entry that must be applied before a read, from a leadership that a
    /// majority has confirmed. Readers on this node and on its followers share it.
    async fn read_index(&self) -> Result<u64, StoreError> {
        // A heartbeat round trip and not the leader's lease: a lease is safe only while clocks run
        // at the same rate, and a paused virtual machine breaks that. A leader that was replaced
        // without noticing would then answer with an old state.
        let confirmed = self.0.raft.ensure_linearizable(ReadPolicy::ReadIndex);
        confirmed.await.map(|id| id.index()).map_err(read_error)
    }

    /// Starts the rounds for readers of this node (`readers`) and for the confirmations of its
    /// leadership (`confirmed`), until the store stops.
    pub(crate) fn serve_reads(
        &self,
        on: &Handle,
        readers: ReadWaiters<()>,
        confirmed: ReadWaiters<u64>,
    ) {
        let stop = &self.0.stop;
        // A weak reference: these tasks must not keep the store open after the last handle is gone.
        let weak = Arc::downgrade(&self.0);
        let barrier = move || {
            let store = Self(weak.upgrade()?);
            Some(async move { answer_in_time(store.barrier()).await })
        };
        on.spawn(rounds::serve(
            readers,
            stop.clone(),
            ROUND_PATIENCE,
            barrier,
        ));
        let weak = Arc::downgrade(&self.0);
        let confirm = move || {
            let store = Self(weak.upgrade()?);
            Some(async move { answer_in_time(store.read_index()).await })
        };
        on.spawn(rounds::serve(
            confirmed,
            stop.clone(),
            ROUND_PATIENCE,
            confirm,
        ));
    }
}

/// Bounds a round by [`READ_TIMEOUT`]: its readers are gone by then.
async fn answer_in_time<T>(
    round: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answered = timeout(READ_TIMEOUT, round).await;
    answered.unwrap_or(Err(StoreError::NoQuorum))
}

fn read_error(error: RaftError<TypeConfig, LinearizableReadError<TypeConfig>>) -> StoreError {
    match error {
        RaftError::APIError(LinearizableReadError::ForwardToLeader(forward)) => {
            StoreError::NotLeader {
                leader: forward.leader_id,
            }
        }
        RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) => StoreError::NoQuorum,
        RaftError::Fatal(Fatal::Stopped) => StoreError::ShutDown,
        RaftError::Fatal(fatal) => StoreError::Fatal(fatal.to_string()),
    }
}
