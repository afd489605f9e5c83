//! Questions to a majority that many readers share.
//!
//! ReadWaiters that wait at the same time get the answer of one round. A reader never joins a round
//! that had begun before it came: that round may have asked before a write was acknowledged which
//! the reader must see. So who shares a round is settled before it begins, and whoever comes
//! later waits for the next one.

use std::future::Future;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::StoreError;

/// ReadWaiters that may wait for a round to begin; more are refused with [`StoreError::Busy`].
pub(crate) const READERS_MAX: usize = 16_384;
/// A round that lasts longer, because its leader is gone, does not hold up the next one.
pub(crate) const ROUND_PATIENCE: Duration = Duration::from_millis(50);

type ReadWaiter<T> = oneshot::Sender<Result<T, StoreError>>;

/// Where readers wait for a round.
#[derive(Debug)]
pub(crate) struct Rounds<T>(mpsc::Sender<ReadWaiter<T>>);

/// The readers that wait.
pub(crate) type ReadWaiters<T> = mpsc::Receiver<ReadWaiter<T>>;

impl<T> Rounds<T> {
    pub(crate) fn new() -> (Self, ReadWaiters<T>) {
        let (sender, readers) = mpsc::channel(READERS_MAX);
        (Self(sender), readers)
    }

    /// What a round answers that begins after this call.
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

/// Serves `readers` until stopped: a round at a time, but one that lasts longer than `patience`
/// is not waited for. `round` begins one; `None` ends it all.
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
                tell(joined, &answer);
                #[cfg(feature = "sim")]
                if crate::sim::has(crate::sim::Bug::JoinedRunningRound) {
                    tell(waiting.drain(..), &answer);
                }
            }
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
        // From here on nobody joins this round; it has asked nobody yet.
        let joined = std::mem::take(&mut waiting);
        let Some(asked) = round() else {
            return;
        };
        running.push(async move { (asked.await, joined) });
        next_at = Instant::now() + patience;
    }
}

fn tell<T: Clone>(
    readers: impl IntoIterator<Item = ReadWaiter<T>>,
    answer: &Result<T, StoreError>,
) {
    for reader in readers {
        // Whoever asked may be gone.
        drop(reader.send(answer.clone()));
    }
}
