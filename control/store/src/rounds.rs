//! Batches concurrent read requests into one quorum round trip (read index).
//!
//! Readers that wait at the same time share one round. A reader never joins a round that has begun
//! before it came: that round may have got its read index before a write was acknowledged that the
//! reader must see. So the readers of a round are fixed before it begins, and later ones wait for
//! the next round.

use std::future::Future;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::StoreError;

/// Capacity of the queue of readers that wait for a round to begin. A reader that finds it full
/// gets [`StoreError::Busy`].
pub(crate) const READERS_MAX: usize = 16_384;
/// Time after which the next round begins although the last one still runs. A round hangs when its
/// leader is gone; readers after an election must not wait for it.
pub(crate) const ROUND_PATIENCE: Duration = Duration::from_millis(50);

/// Gets the result of the round that its reader joined.
type ReadWaiter<T> = oneshot::Sender<Result<T, StoreError>>;

/// The queue of readers that wait for a round.
#[derive(Debug)]
pub(crate) struct Rounds<T>(mpsc::Sender<ReadWaiter<T>>);

/// The receiving end of [`Rounds`].
pub(crate) type ReadWaiters<T> = mpsc::Receiver<ReadWaiter<T>>;

impl<T> Rounds<T> {
    pub(crate) fn new() -> (Self, ReadWaiters<T>) {
        let (sender, readers) = mpsc::channel(READERS_MAX);
        (Self(sender), readers)
    }

    /// The result of a round that begins after this call.
    pub(crate) async fn join(&self) -> Result<T, StoreError> {
        let (to, answer) = oneshot::channel();
        self.0.try_send(to).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy {
                waiting: READERS_MAX,
            },
            mpsc::error::TrySendError::Closed(_) => StoreError::ShutDown,
        })?;
        answer.await.unwrap_or(Err(StoreError::ShutDown))
    }
}

/// Serves `readers` until stopped, one round at a time; a round that lasts longer than `patience`
/// is not waited for. `round` begins a round; `None` from it ends the service.
pub(crate) async fn serve<T: Clone, F>(
    mut readers: ReadWaiters<T>,
    stop: CancellationToken,
    patience: Duration,
    round: impl Fn() -> Option<F>,
) where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut waiting: Vec<ReadWaiter<T>> = Vec::new();
    let mut running = FuturesUnordered::new();
    let mut next_at = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            Some((answer, joined)) = running.next(), if !running.is_empty() => {
                answer_all(joined, &answer);
                #[cfg(feature = "sim")]
                if crate::sim::has(crate::sim::Bug::JoinedRunningRound) {
                    answer_all(waiting.drain(..), &answer);
                }
            }
            // Beyond the bound the readers stay in the queue, whose own bound refuses further ones.
            n = readers.recv_many(&mut waiting, READERS_MAX), if waiting.len() < READERS_MAX => {
                if n == 0 {
                    return;
                }
            }
            () = sleep_until(next_at), if !waiting.is_empty() => {}
        }
        let may_begin = running.is_empty() || Instant::now() >= next_at;
        if waiting.is_empty() || !may_begin {
            continue;
        }
        // The readers are taken before the round asks for its read index. In the other order a
        // reader could join after the index was fixed, and miss a write acknowledged in between.
        let joined = std::mem::take(&mut waiting);
        let Some(asked) = round() else {
            return;
        };
        running.push(async move { (asked.await, joined) });
        next_at = Instant::now() + patience;
    }
}

/// Sends `answer` to every reader of a round.
fn answer_all<T: Clone>(
    readers: impl IntoIterator<Item = ReadWaiter<T>>,
    answer: &Result<T, StoreError>,
) {
    for reader in readers {
        // The reader may have given up.
        drop(reader.send(answer.clone()));
    }
}
