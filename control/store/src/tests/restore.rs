//! Export and restore of the state.

use std::convert::Infallible;

use control_state::{Command, Tables, Tenant};

use super::tables::{propose, tenant};
use super::*;
use crate::{RestoreError, StateRestore};

pub(super) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

async fn exported(store: &Store) -> (crate::StateExport, Rows) {
    let export = store.export().await.unwrap();
    let rows = export.rows().map(Result::unwrap).collect();
    (export, rows)
}

fn restore(dir: &Path, export: &crate::StateExport) -> StateRestore {
    StateRestore {
        dir: dir.to_owned(),
        cluster: "test".to_owned(),
        node_id: 1,
        term: export.term,
        revision: export.revision,
        made_at: None,
    }
}

fn ok(rows: &Rows) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Infallible>> + '_ {
    rows.iter().cloned().map(Ok)
}

fn dump(tables: &Tables) -> Vec<control_state::Record> {
    tables.dump().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_directory_is_a_new_cluster_with_the_old_state() {
    let dir = tempfile::tempdir().unwrap();
    let store: Store = Store::open(config(&dir.path().join("old"))).await.unwrap();
    for n in 0..30 {
        propose(&store, tenant(&format!("tenant-{n}")))
            .await
            .unwrap();
    }
    let (export, rows) = exported(&store).await;
    let before = store.read(dump).await.unwrap();
    let old = (store.cluster_id(), store.term());
    propose(&store, tenant("too-late")).await.unwrap();
    store.shutdown().await;

    let new = dir.path().join("new");
    let id = restore(&new, &export).run(ok(&rows)).await.unwrap();
    assert_ne!(id, old.0);
    let mut revision = export.revision;
    // The restored node starts, accepts writes, and starts again.
    for round in 0..2 {
        let store: Store = Store::open(config(&new)).await.unwrap();
        assert_eq!(store.cluster_id(), id);
        assert!(store.term() > old.1 + 1000, "agents refuse older terms");
        let (now, at) = store
            .read_versioned(|tables, at| (dump(tables), at.0))
            .await
            .unwrap();
        assert!(at > revision, "watches of the old cluster cannot go on");
        revision = at;
        assert_eq!(now.len(), before.len() + round);
        assert!(before.iter().all(|record| now.contains(record)));
        propose(&store, tenant(&format!("new-{round}")))
            .await
            .unwrap();
        if round == 0 {
            // A member that joins would receive this snapshot.
            store.snapshot().await.unwrap();
        }
        store.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_restored_over_anything_or_from_rubbish() {
    let dir = tempfile::tempdir().unwrap();
    let store: Store = Store::open(config(&dir.path().join("old"))).await.unwrap();
    propose(&store, tenant("acme")).await.unwrap();
    let (export, mut rows) = exported(&store).await;
    store.shutdown().await;
    let taken = restore(&dir.path().join("old"), &export);
    assert!(matches!(
        taken.run(ok(&rows)).await,
        Err(RestoreError::Taken { .. })
    ));
    rows.push((b"moon/1".to_vec(), vec![2; 20]));
    let refused = restore(&dir.path().join("new"), &export)
        .run(ok(&rows))
        .await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("moon/1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_nodes_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Tables::new();
    let command = Command::new(proto_types::Timestamp::from_ms(1), "test", tenant("acme"));
    let outcome = crate::StateMachine::apply(&mut tables, &command);
    let mut rows: Rows = Vec::new();
    for change in &outcome.changes {
        let row = crate::StateMachine::row(&tables, change).unwrap();
        rows.push((row.key, row.value.unwrap()));
    }
    rows.push((b"control-node/7".to_vec(), vec![2; 20]));
    let new = StateRestore {
        dir: dir.path().join("new"),
        cluster: "test".to_owned(),
        node_id: 1,
        term: 1,
        revision: 1,
        made_at: None,
    };
    new.run(ok(&rows)).await.unwrap();
    let store: Store = Store::open(config(&new.dir)).await.unwrap();
    let tenants = store.read(|tables| tables.all::<Tenant>().count()).await;
    assert_eq!(tenants.unwrap(), 1);
    store.shutdown().await;
}
