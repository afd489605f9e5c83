//! One process at a time has a data directory.

use std::time::{Duration, Instant};

use super::{Ledger, config, open, put};
use crate::{OpenError, Store, StoreConfig};

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let second = Store::<Ledger>::open(config(dir.path())).await;
    assert!(matches!(second, Err(OpenError::InUse { .. })), "{second:?}");
    store.shutdown().await;
    let other = StoreConfig {
        node_id: 2,
        ..config(dir.path())
    };
    let foreign = Store::<Ledger>::open(other).await;
    assert!(
        matches!(foreign, Err(OpenError::Foreign { .. })),
        "{foreign:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_store_is_locked_until_its_files_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    put(&store, "key", "value").await;
    // Stands for a task that has not ended yet.
    let _used = store.0.shared.clone();
    drop(store);
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        match Store::<Ledger>::open(config(dir.path())).await {
            Ok(store) => break store.shutdown().await,
            Err(OpenError::InUse { .. }) => assert!(Instant::now() < end, "it stays locked"),
            Err(error) => panic!("{error}"),
        }
    }
}
