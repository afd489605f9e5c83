//! Tests of snapshots on disk, and of the log behind them.

use std::sync::Arc;

use super::*;
use crate::ChangeEvent;
use crate::applied_state::AppliedState;
use crate::applier::Applier;
use crate::disk::{RealDisk, StoreDisk};
use crate::platform::StoreThreads;
use crate::snapshot::SnapshotStore;
use openraft::storage::RaftStateMachine;

#[tokio::test(flavor = "multi_thread")]
async fn the_log_does_not_grow_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let small = || StoreConfig {
        snapshot_every_entries: 1_000_000,
        keep_entries: 10,
        segment_bytes: 16 << 10,
        ..config(dir.path())
    };
    let store: Store<Ledger> = Store::open(small()).await.unwrap();
    for n in 0..300 {
        put(
            &store,
            &format!("key-{}", n % 40),
            &format!("{n}-{}", "v".repeat(200)),
        )
        .await;
    }
    let grown = store.metrics();
    assert!(grown.log_segments > 4, "{grown:?}");
    store.snapshot().await.unwrap();
    put(&store, "after", "value").await;
    // The purge follows the snapshot.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while store.metrics().log_segments > 2 {
        assert!(
            std::time::Instant::now() < deadline,
            "{:?}",
            store.metrics()
        );
        tokio::task::yield_now().await;
    }
    let purged = store.metrics().purged.unwrap();
    assert!(purged > 250, "{purged}");
    let before = store.read(Ledger::clone).await.unwrap();
    store.shutdown().await;

    // The purged entries cannot be replayed, so the state comes from its own files.
    let store: Store<Ledger> = Store::open(small()).await.unwrap();
    assert_eq!(store.read(Ledger::clone).await.unwrap(), before);
    assert!(store.metrics().purged >= Some(purged));
    store.shutdown().await;

    // Without these files it comes from the snapshot and the rest of the log.
    std::fs::remove_dir_all(dir.path().join("state")).unwrap();
    let store: Store<Ledger> = Store::open(small()).await.unwrap();
    assert_eq!(store.read(Ledger::clone).await.unwrap(), before);
    put(&store, "again", "value").await;
    store.shutdown().await;
}

fn snapshots(dir: &Path) -> SnapshotStore {
    SnapshotStore::open(Arc::new(RealDisk), &dir.join("snapshots")).unwrap()
}

fn shared(dir: &Path) -> Arc<AppliedState<Ledger>> {
    let engine = RealDisk.open_state(&dir.join("state")).unwrap();
    let snapshots = snapshots(dir);
    Arc::new(AppliedState::load(engine, snapshots, StoreThreads::Own, 100).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_becomes_what_the_snapshot_holds() {
    let dir = tempfile::tempdir().unwrap();
    let sender_dir = dir.path().join("sender");
    let store = open(&sender_dir).await;
    for n in 0..20 {
        put(&store, &format!("key-{n}"), "value").await;
    }
    let sent = store.read(Ledger::clone).await.unwrap();
    store.snapshot().await.unwrap();
    store.shutdown().await;

    let (meta, snapshot) = snapshots(&sender_dir).newest().unwrap().unwrap();
    let receiver_dir = dir.path().join("receiver");
    std::fs::create_dir_all(&receiver_dir).unwrap();
    let receiver = shared(&receiver_dir);
    // A row that the snapshot does not have must disappear.
    let stale = crate::StateRow {
        key: b"stale".to_vec(),
        value: crate::encode_row(&"x").ok(),
    };
    receiver
        .engine
        .commit(&[stale], &receiver.progress())
        .unwrap();
    let mut watch = receiver.hub.subscribe();
    let mut applier = Applier {
        shared: receiver.clone(),
        log: Arc::default(),
    };
    applier.install_snapshot(&meta, snapshot).await.unwrap();

    assert_eq!(*receiver.state.read().unwrap(), sent);
    assert_eq!(applier.applied_state().await.unwrap().0, meta.last_log_id);
    assert_eq!(watch.next().await, Some(ChangeEvent::Resync));
    let last = meta.last_log_id.unwrap().index;
    receiver.make_durable(last).unwrap();
    assert!(
        receiver.make_durable(last + 1).is_err(),
        "the log must keep what the state lacks"
    );
    let newest = receiver.snapshots.newest().unwrap().unwrap();
    assert_eq!(
        newest.0, meta,
        "what was received is the receiver's snapshot now"
    );
    receiver.engine.close().unwrap();
    drop((applier, receiver));
    assert_eq!(
        *shared(&receiver_dir).state.read().unwrap(),
        sent,
        "installed for good"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_snapshot_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    put(&store, "key", "value").await;
    store.snapshot().await.unwrap();
    store.shutdown().await;
    let snapshots = snapshots(dir.path());
    let (_, newest) = snapshots.newest().unwrap().unwrap();
    let meta = newest.0.join("META");
    let mut bytes = std::fs::read(&meta).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&meta, bytes).unwrap();
    let error = snapshots.newest().unwrap_err().to_string();
    assert!(error.contains(&newest.0.display().to_string()), "{error}");
}
