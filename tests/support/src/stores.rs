//! Stores of one node: how a test writes to them, and how it restores one from another.

#![expect(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::convert::Infallible;
use std::path::Path;

use control_state::{AnnounceNode, Command, FEATURE_LEVEL, Op, Reply, StateError};
use control_store::{ProposeError, StateRestore, Store, StoreConfig};

use crate::permit_for;

/// Name of the clusters of tests.
pub const CLUSTER: &str = "test";

/// Writes a command with the permit that the product would have; see [`permit_for`].
///
/// # Errors
/// The state refuses the command, or the store cannot write it.
pub async fn propose(store: &Store, op: impl Into<Op>) -> Result<Reply, ProposeError<StateError>> {
    let command = Command::new(store.now(), "test", op);
    let permit = permit_for(command.op.name());
    store.propose(&permit, &command).await
}

/// What node `id` announces of itself at its start, with the newest feature level.
#[must_use]
pub fn announcement(id: u64) -> AnnounceNode {
    AnnounceNode {
        id,
        peer_address: String::new(),
        mesh_addresses: Vec::new(),
        level: FEATURE_LEVEL,
        version: String::new(),
    }
}

/// Restores what a backup of the store would hold into an empty directory. Returns the
/// configuration with which the new store opens as node 1 of another cluster.
///
/// # Panics
/// The store cannot be read, or the directory is not empty.
pub async fn restore_into(store: &Store, dir: &Path) -> StoreConfig {
    let export = store.export().await.unwrap();
    let restore = StateRestore {
        dir: dir.to_path_buf(),
        cluster: CLUSTER.into(),
        node_id: 1,
        term: export.term,
        revision: export.revision,
        made_at: Some(store.now()),
    };
    let rows: Vec<_> = export.rows().map(Result::unwrap).collect();
    let rows = rows.into_iter().map(Ok::<_, Infallible>);
    restore.run(rows).await.unwrap();
    StoreConfig::new(dir, 1, CLUSTER)
}
