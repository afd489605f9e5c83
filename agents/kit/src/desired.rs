//! Follows a stream of desired state, whole each time.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use base_runtime::{Backoff, Chain};
use bytes::Bytes;
use prost::Message;
use proto_link::{LinkStatus, Streaming};
use strum::IntoStaticStr;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::agent::Agent;
use crate::cache::{CacheError, LastGood};
use crate::metrics::Steps;

/// Pauses between attempts to open the stream.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

/// Desired state that orders itself: an older (term, generation) is never acted on.
pub trait Fenced: Message + Default + Clone + PartialEq + Send + 'static {
    /// Raft term, then generation.
    fn fence(&self) -> (u64, u64);
    /// The same content under another fence, without a signature.
    fn fenced(self, fence: (u64, u64)) -> Self;
    /// What a cache holds.
    ///
    /// # Errors
    /// See [`LastGood::load`].
    fn load(cache: &LastGood) -> Result<Option<Self>, CacheError>;
    /// Puts a message, as it came, into a cache.
    ///
    /// # Errors
    /// See [`LastGood::store`].
    fn store(cache: &LastGood, message: &[u8]) -> Result<(), CacheError>;
}

macro_rules! fenced {
    ($($name:ty),*) => {$(
        impl Fenced for $name {
            fn fence(&self) -> (u64, u64) {
                (self.term, self.generation)
            }
            fn fenced(self, (term, generation): (u64, u64)) -> Self {
                Self { term, generation, seal: None, ..self }
            }
            fn load(cache: &LastGood) -> Result<Option<Self>, CacheError> {
                cache.load()
            }
            fn store(cache: &LastGood, message: &[u8]) -> Result<(), CacheError> {
                cache.store::<Self>(message)
            }
        }
    )*};
}

fenced!(
    proto_mesh::SwitchDesired,
    proto_mesh::BmcDesired,
    proto_mesh::BootDesired
);

/// Orders of a machine are never kept: hammer has no disk of its own, and boots anew.
impl Fenced for proto_mesh::MachineOrder {
    fn fence(&self) -> (u64, u64) {
        (self.term, self.generation)
    }
    fn fenced(self, (term, generation): (u64, u64)) -> Self {
        Self {
            term,
            generation,
            ..self
        }
    }
    fn load(_cache: &LastGood) -> Result<Option<Self>, CacheError> {
        Ok(None)
    }
    fn store(_cache: &LastGood, _message: &[u8]) -> Result<(), CacheError> {
        Ok(())
    }
}

/// Where a desired state came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From disk at the start; control may have changed its mind since.
    Cache,
    /// From control.
    Live,
}

/// Calls `on` with the cached state, then with each newer one from control, until `stop`.
///
/// Only the newest counts: while `on` runs, further states replace each other and the last one
/// is handed over next. `on` is awaited to its end, also when `stop` comes meanwhile. States
/// older than the newest seen are dropped, repeated ones too. The stream is opened anew with
/// jittered pauses when it ends; never by an agent that works without control. A cached state
/// that control did not sign for this agent counts as none.
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
    let steps = agent.steps();
    let mut newest: Option<M> = cache.as_ref().and_then(load);
    let mut source = Source {
        open,
        stream: None,
        failures: 0,
        name: agent.identity().id.clone(),
        offline: agent.is_offline(),
    };
    let mut due = newest.clone().map(|m| (m, Origin::Cache));
    loop {
        // Work on what is due, and meanwhile listen for what comes after it.
        if let Some((state, origin)) = due.take() {
            let mut work = pin!(on(state, origin));
            loop {
                tokio::select! {
                    () = &mut work => break,
                    next = source.next() => take((&mut newest, &steps), next, &cache, &mut due).await,
                }
            }
        } else {
            tokio::select! {
                () = stop.cancelled() => return,
                next = source.next() => take((&mut newest, &steps), next, &cache, &mut due).await,
            }
        }
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

/// What to do with a state that arrived.
#[derive(Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Verdict {
    /// Act on it.
    News,
    /// Says what is known under a newer fence: a new session or a new leader.
    Repeated,
    /// Older than what was seen: drop it.
    Stale,
}

impl Verdict {
    /// As metrics call it.
    fn as_str(&self) -> &'static str {
        self.into()
    }
}

fn judge<M: Fenced>(newest: Option<&M>, next: &M) -> Verdict {
    let fence = next.fence();
    match newest {
        Some(old) if fence < old.fence() => Verdict::Stale,
        Some(old) if old.clone().fenced(fence) == *next => Verdict::Repeated,
        _ => Verdict::News,
    }
}

async fn take<M: Fenced>(
    (newest, steps): (&mut Option<M>, &Steps),
    (next, bytes): (M, Bytes),
    cache: &Option<LastGood>,
    due: &mut Option<(M, Origin)>,
) {
    let fence = next.fence();
    let next = next.fenced(fence);
    let verdict = judge(newest.as_ref(), &next);
    steps.count("desired_state", verdict.as_str());
    if verdict == Verdict::Stale {
        let (term, generation) = fence;
        warn!(term, generation, "older desired state dropped");
        return;
    }
    // A repeated one as well: it is signed by the authority of now.
    if let Some(cache) = cache.clone() {
        let stored = tokio::task::spawn_blocking(move || M::store(&cache, &bytes)).await;
        if let Ok(Err(e)) = stored {
            warn!(error = %Chain(&e), "desired state not cached");
        }
    }
    if verdict == Verdict::News {
        *due = Some((next.clone(), Origin::Live));
    }
    *newest = Some(next);
}

struct Source<M, O> {
    open: O,
    stream: Option<Streaming<M>>,
    failures: u32,
    name: String,
    offline: bool,
}

impl<M, O, OF> Source<M, O>
where
    M: Fenced,
    O: Fn() -> OF,
    OF: Future<Output = Result<Streaming<M>, LinkStatus>>,
{
    /// The next state from control, however long it takes. May be dropped at any await.
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
        // The first failure is mostly a session that was replaced or a control that restarts.
        if self.failures == 1 {
            info!(agent = %self.name, error = %e, "desired state: stream ended");
        } else {
            warn!(agent = %self.name, error = %e, "desired state: no stream");
        }
    }

    async fn pause(&self) {
        if self.failures > 1 {
            sleep(BACKOFF.pause(self.failures)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use proto_mesh::MachineOrder;
    use proto_mesh::machine_order::{Hold, Order};

    use super::*;

    fn order(term: u64, generation: u64, reason: &str) -> MachineOrder {
        let order = Some(Order::Hold(Hold {
            reason: reason.to_owned(),
        }));
        MachineOrder {
            term,
            generation,
            order,
        }
    }

    #[test]
    fn fences() {
        let seen = order(3, 10, "a");
        for (next, verdict) in [
            (order(3, 11, "b"), Verdict::News),
            (order(3, 10, "b"), Verdict::News),
            (order(4, 1, "b"), Verdict::News),
            (order(3, 12, "a"), Verdict::Repeated),
            (order(3, 10, "a"), Verdict::Repeated),
            (order(3, 9, "b"), Verdict::Stale),
            (order(2, 99, "b"), Verdict::Stale),
        ] {
            assert_eq!(judge(Some(&seen), &next), verdict, "{next:?}");
        }
        assert_eq!(judge(None, &seen), Verdict::News);
    }

    #[test]
    fn metric_names_do_not_change() {
        let all = [Verdict::News, Verdict::Repeated, Verdict::Stale];
        let names = all.map(|verdict| verdict.as_str());
        assert_eq!(names, ["news", "repeated", "stale"]);
    }
}
