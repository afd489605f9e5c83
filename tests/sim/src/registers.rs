//! The workload of clients that read, write and watch numbers: what it proves is the store's.

use control_store::{ProposeError, Store, StoreError};
use tokio::sync::oneshot;

use crate::machine::{Put, Registers};
use crate::node::{Shared, World};
use crate::oracle::Oracle;
use crate::watcher::{self, Seen};
use crate::workload::Workload;

/// Numbers under keys, with what clients and watchers were told.
#[derive(Debug, Default)]
pub(crate) struct RegisterWork {
    pub(crate) seen: Seen,
    pub(crate) oracle: Oracle,
}

/// A request of a client to a node.
#[derive(Debug)]
pub(crate) enum RegisterRequest {
    Put(Put, oneshot::Sender<Result<u64, StoreError>>),
    /// Answers revision and value.
    Read(u8, oneshot::Sender<Result<(u64, Option<u64>), StoreError>>),
}

impl Workload for RegisterWork {
    type Machine = Registers;
    type Request = RegisterRequest;

    async fn answer(store: Store<Registers>, request: RegisterRequest) {
        // Whoever asked may be gone.
        match request {
            RegisterRequest::Put(mut put, to) => {
                put.at_ms = store.now().ms();
                let done = store.propose(&(), &put).await;
                let done = done.map_err(|error| match error {
                    ProposeError::Store(error) => error,
                    ProposeError::Rejected(never) => StoreError::Fatal(never.to_string()),
                });
                drop(to.send(done));
            }
            RegisterRequest::Read(key, to) => {
                let read = store
                    .read_versioned(|state, revision| (revision.0, state.get(key)))
                    .await;
                drop(to.send(read));
            }
        }
    }

    fn observe(world: &Shared<Self>, id: u64, store: &Store<Registers>) {
        tokio::task::spawn_local(watcher::run(world.clone(), id, store.clone()));
    }

    fn inspect(_world: &World<Self>) -> Result<(), String> {
        Ok(())
    }

    fn digest(state: &Registers) -> Vec<u8> {
        state.digest().to_be_bytes().to_vec()
    }
}
