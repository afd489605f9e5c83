//! Questions to the leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;

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
        store.answer_questions(move |question: String| async move { (node, question) });
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

/// The leader answers when it has the answer: nobody asks again, and a question whose caller is gone
/// is given up.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_take_its_time_and_ends_with_its_caller() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    let answer = Arc::new(watch::Sender::new(None::<u64>));
    let asked = Arc::new(AtomicUsize::new(0));
    for store in &stores {
        let (answer, asked) = (answer.clone(), asked.clone());
        store.answer_questions(move |_: String| {
            let mut answer = answer.subscribe();
            asked.fetch_add(1, Ordering::SeqCst);
            async move { *answer.wait_for(Option::is_some).await.unwrap() }
        });
    }
    let limit = Duration::from_secs(10);
    for store in [&stores[0], &stores[1]] {
        answer.send_replace(None);
        let before = asked.load(Ordering::SeqCst);
        let waiting = store.ask_leader_within::<_, Option<u64>>(limit, &"how many?");
        let later = async {
            while answer.receiver_count() == 0 {
                tokio::task::yield_now().await;
            }
            answer.send_replace(Some(7));
        };
        let (found, ()) = tokio::join!(waiting, later);
        assert_eq!(found.unwrap(), Some(7));
        assert_eq!(asked.load(Ordering::SeqCst), before + 1, "asked once");
    }
    answer.send_replace(None);
    let short = Duration::from_millis(200);
    let late = stores[0].ask_leader_within::<_, Option<u64>>(short, &"how many?");
    assert!(matches!(late.await, Err(StoreError::NoQuorum)));
    assert_eq!(answer.receiver_count(), 0, "given up with its caller");
    for store in &stores {
        store.shutdown().await;
    }
}
