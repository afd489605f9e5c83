//! Questions to the leader.

use std::sync::Arc;

use super::cluster::leads;
use super::mesh::Mesh;
use super::*;
use crate::StoreError;

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_answers_the_questions_of_any_node() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    let early: Result<u64, StoreError> = stores[1].ask_leader(&"early").await;
    assert!(matches!(early, Err(StoreError::Fatal(_))), "{early:?}");
    for store in &stores {
        let node = store.node_id();
        store.answer_questions(move |question: String| (node, question));
    }
    let asked = |store: Store<Ledger>| async move {
        let answer: (u64, String) = store.ask_leader(&"who leads?").await.unwrap();
        answer
    };
    for store in &stores {
        assert_eq!(asked(store.clone()).await, (1, "who leads?".to_owned()));
    }
    mesh.cut_off(1);
    let leader = leads(&stores[1..]).await;
    for store in &stores[1..] {
        assert_eq!(asked(store.clone()).await.0, leader.node_id());
    }
    mesh.heal();
    for store in &stores {
        store.shutdown().await;
    }
}
