//! Follows a stream of desired state. Each message carries the whole state.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use base_runtime::{Backoff, Chain};
use bytes::Bytes;
use proto_link::{LinkStatus, Streaming};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::agent::Agent;
use crate::cache::LastGood;
use crate::fence::{Fenced, StateFence, Verdict};
use crate::steps::Steps;

/// Pauses between attempts to open the stream.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

/// The source of a desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From disk at the start; control may have newer state.
    Cache,
    /// From control.
    Live,
}

/// Calls `on` with the cached state, then with each newer one from control, until `stop`.
///
/// While `on` runs, further states replace each other, and the last one is passed next. `on` is
/// awaited to its end, also if `stop` is cancelled meanwhile. States older than the newest seen and
/// repeated states are dropped. When the stream ends it is reopened after jittered pauses; an
/// offline agent never opens it. A cached state that control did not sign for this agent is
/// ignored.
pub async fn run_desired<M, O, OF, F, FF>(
    agent: &Agent,
    open: O,
    cache: Option<LastGood>,
    mut on: F,
    stop: CancellationToken,
) where
    M: Fenced,
    O: Fn() -> OF,
    OF: Future<Output = Result<Streaming<M>, LinkStatus>>,
    F: FnMut(M, Origin) -> FF,
    FF: Future<Output = ()>,
{
    let newest: Option<M> = cache.as_ref().and_then(load);
    // The cached state goes first: an agent that restarts while control is away must keep its
    // switch or its boot server in the state that control last wanted.
    let mut follower = Follower {
        due: newest.clone().map(|state| (state, Origin::Cache)),
        newest,
        steps: agent.steps(),
        cache,
    };
    let mut source = DesiredSource {
        open,
        stream: None,
        failures: 0,
        name: agent.identity().id.clone(),
        offline: agent.is_offline(),
    };
    loop {
        // The stream is read during the work as well: unread states would fill the stream's window
        // and look to control like an agent that hangs.
        if let Some((state, origin)) = follower.due.take() {
            let mut work = pin!(on(state, origin));
            loop {
                tokio::select! {
                    () = &mut work => break,
                    (next, bytes) = source.next() => follower.take(next, bytes).await,
                }
            }
        } else {
            tokio::select! {
                () = stop.cancelled() => return,
                (next, bytes) = source.next() => follower.take(next, bytes).await,
            }
        }
        // While work is due `stop` is not polled. Without this check a stream of changes would keep the
        // agent from stopping.
        if stop.is_cancelled() {
            return;
        }
    }
}

fn load<M: Fenced>(cache: &LastGood) -> Option<M> {
    M::load(cache).unwrap_or_else(|e| {
        error!(error = %Chain(&e), "last-good state not used");
        None
    })
}

/// The newest state seen, and the one to act on next.
struct Follower<M> {
    newest: Option<M>,
    due: Option<(M, Origin)>,
    steps: Steps,
    cache: Option<LastGood>,
}

impl<M: Fenced> Follower<M> {
    /// Takes a state that arrived, and its bytes.
    async fn take(&mut self, next: M, bytes: Bytes) {
        let fence = next.fence();
        // Without the seal: it differs at each opening of the stream, and would make repeated
        // states look new.
        let next = next.fenced(fence);
        let verdict = Verdict::of(self.newest.as_ref(), &next);
        self.steps.count("desired_state", verdict.as_str());
        if verdict == Verdict::Stale {
            let StateFence { term, generation } = fence;
            warn!(term, generation, "older desired state dropped");
            return;
        }
        // Repeated states are stored as well: their seal is of the current certificate authority,
        // and the stored one may be of an authority that is about to end.
        if let Some(cache) = self.cache.clone() {
            let stored = tokio::task::spawn_blocking(move || M::store(&cache, &bytes)).await;
            // The agent acts on the state even if the disk is full: it is control's order, and the
            // cache is only for the next start.
            if let Ok(Err(e)) = stored {
                warn!(error = %Chain(&e), "desired state not cached");
            }
        }
        if verdict == Verdict::News {
            self.due = Some((next.clone(), Origin::Live));
        }
        self.newest = Some(next);
    }
}

/// The stream of desired state over reconnects.
struct DesiredSource<M, O> {
    open: O,
    stream: Option<Streaming<M>>,
    failures: u32,
    name: String,
    offline: bool,
}

impl<M, O, OF> DesiredSource<M, O>
where
    M: Fenced,
    O: Fn() -> OF,
    OF: Future<Output = Result<Streaming<M>, LinkStatus>>,
{
    /// Waits for the next state from control without a limit. Cancel safe.
    async fn next(&mut self) -> (M, Bytes) {
        if self.offline {
            return std::future::pending().await;
        }
        loop {
            let Some(stream) = &mut self.stream else {
                self.pause().await;
                match (self.open)().await {
                    Ok(stream) => self.stream = Some(stream),
                    Err(e) => self.failed(&e),
                }
                continue;
            };
            match stream.message_and_bytes().await {
                Ok(Some(state)) => {
                    self.failures = 0;
                    return state;
                }
                Ok(None) => self.stream = None,
                Err(e) => {
                    self.stream = None;
                    self.failed(&e);
                }
            }
        }
    }

    fn failed(&mut self, e: &LinkStatus) {
        self.failures = self.failures.saturating_add(1);
        // The first failure is normal: the session was replaced after a renewal, or a node of
        // control restarts. Only further ones deserve a warning.
        if self.failures == 1 {
            info!(agent = %self.name, error = %e, "desired state stream ended; reopening");
        } else {
            warn!(agent = %self.name, error = %e, "desired state stream cannot be opened");
        }
    }

    /// Waits before the next attempt; not before the first one, which mostly succeeds.
    async fn pause(&self) {
        if self.failures > 1 {
            sleep(BACKOFF.pause(self.failures)).await;
        }
    }
}
