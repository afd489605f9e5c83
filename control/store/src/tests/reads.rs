//! Readers that share a round, and readers that must not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::mesh::{Mesh, wait_for};
use super::*;
use crate::rounds::{READERS_MAX, Rounds, serve};

const FOR_EVER: Duration = Duration::from_secs(3600);

/// Rounds whose result is their number, and which end when the test lets them.
struct Held {
    rounds: Arc<Rounds<u64>>,
    begun: Arc<AtomicU64>,
    may_end: Arc<Semaphore>,
    _served: JoinSet<()>,
}

fn held(patience: Duration) -> Held {
    let (rounds, readers) = Rounds::new();
    let (begun, may_end) = (Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(0)));
    let (counter, gate) = (begun.clone(), may_end.clone());
    let round = move || {
        let (number, gate) = (counter.fetch_add(1, Ordering::SeqCst) + 1, gate.clone());
        Some(async move {
            gate.acquire().await.unwrap().forget();
            Ok(number)
        })
    };
    let mut served = JoinSet::new();
    served.spawn(serve(readers, CancellationToken::new(), patience, round));
    Held {
        rounds: Arc::new(rounds),
        begun,
        may_end,
        _served: served,
    }
}

impl Held {
    /// Starts a reader; its result arrives on `answers`.
    fn reader(&self, tasks: &mut JoinSet<()>, answers: &mpsc::UnboundedSender<u64>) {
        let (rounds, answers) = (self.rounds.clone(), answers.clone());
        tasks.spawn(async move { answers.send(rounds.join().await.unwrap()).unwrap() });
    }

    async fn until_begun(&self, rounds: u64) {
        wait_for("the round", || async {
            self.begun.load(Ordering::SeqCst) == rounds
        })
        .await;
    }
}

#[tokio::test]
async fn readers_share_the_next_round_and_never_the_one_that_runs() {
    let held = held(FOR_EVER);
    let (to, mut answers) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    held.reader(&mut tasks, &to);
    held.until_begun(1).await;
    for _ in 0..10 {
        held.reader(&mut tasks, &to);
    }
    // The ten have asked, but the round that runs had begun before they did.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(held.begun.load(Ordering::SeqCst), 1);
    held.may_end.add_permits(1);
    assert_eq!(answers.recv().await, Some(1));
    held.until_begun(2).await;
    assert!(
        answers.try_recv().is_err(),
        "ten wait for a round of their own"
    );
    held.may_end.add_permits(1);
    for _ in 0..10 {
        assert_eq!(answers.recv().await, Some(2), "and share it");
    }
    assert_eq!(held.begun.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_round_that_hangs_holds_nobody_up() {
    let held = held(Duration::ZERO);
    let (to, mut answers) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    held.reader(&mut tasks, &to);
    held.until_begun(1).await;
    held.reader(&mut tasks, &to);
    held.until_begun(2).await;
    held.may_end.add_permits(2);
    let mut both = [answers.recv().await, answers.recv().await];
    both.sort_unstable();
    assert_eq!(both, [Some(1), Some(2)]);
}

#[tokio::test]
async fn too_many_readers_are_told_so() {
    let (rounds, _readers) = Rounds::<u64>::new();
    let mut waiting: Vec<_> = (0..READERS_MAX).map(|_| Box::pin(rounds.join())).collect();
    for reader in &mut waiting {
        assert!(reader.now_or_never().is_none());
    }
    let refused = rounds.join().await;
    assert!(
        matches!(refused, Err(crate::StoreError::Busy { .. })),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_readers_see_what_was_acknowledged_before_them() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    for n in 0..20 {
        put(&stores[n % 3], "key", &n.to_string()).await;
        let mut readers = JoinSet::new();
        for number in 0..30 {
            let store = stores[number % 3].clone();
            readers.spawn(async move { store.read(|l| l.entries["key"].clone()).await });
        }
        while let Some(read) = readers.join_next().await {
            assert_eq!(read.unwrap().unwrap(), n.to_string());
        }
    }
    for store in &stores {
        store.shutdown().await;
    }
}
