//! Streams of what an agent of the published stack shall do: level-triggered, so that whoever
//! comes back is told again whatever still holds.
//!
//! Invariant: nothing is sent that the caller's token does not allow at that moment; when the
//! token or its role ends, so does the stream.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use control_gate::Caller;
use control_gate::ServiceContext;
use control_gate::refusal::{of_store, refused};
use control_gate::{Rights, bears_rights};
use control_state::{Change, ErrorCode, Tables};
use control_store::{Event, Subscription};
use futures::{Stream, stream};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::Upstream;
use crate::published::StreamPlace;

/// An agent whose stream stands is alive; this is how often that is said, and how often the
/// token's end is looked for.
const BEAT: Duration = Duration::from_secs(30);

/// A stream of messages.
pub(crate) type AgentStream<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

/// What is sent: looks at the state, and gives what was not sent on this stream before.
pub(crate) type Look<M> = Box<dyn FnMut(&Tables) -> Vec<M> + Send>;

/// Says that the agent is there.
pub(crate) type Beat =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), Status>> + Send>> + Send + Sync>;

/// Asks whether a message may be sent on this stream, just before it is.
pub(crate) type Claim<M> =
    Box<dyn Fn(&M) -> Pin<Box<dyn Future<Output = Result<bool, Status>> + Send>> + Send + Sync>;

/// What a stream is made of.
pub(crate) struct StreamPlan<M> {
    pub(crate) look: Look<M>,
    /// `None` means that every message is sent.
    pub(crate) claim: Option<Claim<M>>,
    /// Tells, beside changes of the state, that there may be something to send.
    pub(crate) wakes: Option<watch::Receiver<()>>,
    /// Cheap: whether a change can matter at all.
    pub(crate) matters: fn(&Change) -> bool,
    pub(crate) beat: Beat,
    /// Held as long as the stream stands.
    pub(crate) place: StreamPlace,
}

struct Open<M> {
    gate: Arc<ServiceContext>,
    stop: CancellationToken,
    rights: Rights,
    look: Look<M>,
    claim: Option<Claim<M>>,
    wakes: Option<watch::Receiver<()>>,
    matters: fn(&Change) -> bool,
    says: Beat,
    subscription: Subscription<Change>,
    ready: VecDeque<M>,
    beat: Interval,
    _place: StreamPlace,
}

/// Opens a stream for a caller that the gate let in.
///
/// # Errors
/// When the token ended meanwhile, or the state cannot be read.
pub(crate) async fn open<M: Send + 'static>(
    upstream: &Upstream,
    caller: &Caller,
    plan: StreamPlan<M>,
) -> Result<AgentStream<M>, Status> {
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut open = Open {
        rights: Rights::of_method(caller)?,
        gate: Arc::clone(&upstream.gate),
        stop: upstream.stop.clone(),
        look: plan.look,
        claim: plan.claim,
        wakes: plan.wakes,
        matters: plan.matters,
        says: plan.beat,
        _place: plan.place,
        subscription: upstream.gate.store.watch(),
        ready: VecDeque::new(),
        beat,
    };
    // The first look is linearizable: whoever comes from another node misses nothing.
    let store = upstream.gate.store.clone();
    store
        .read(|tables| open.look(tables))
        .await
        .map_err(of_store)??;
    Ok(Box::pin(stream::unfold(Some(open), |open| async {
        let mut open = open?;
        let next = open.next().await;
        let open = next.is_ok().then_some(open);
        Some((next, open))
    })))
}

impl<M> Open<M> {
    /// Rights first, then what there is to say.
    fn look(&mut self, tables: &Tables) -> Result<(), Status> {
        let (gate, now) = (&self.gate, self.gate.now());
        self.rights.look(tables, gate, now)?;
        self.ready.extend((self.look)(tables));
        Ok(())
    }

    fn check(&mut self) -> Result<(), Status> {
        let store = self.gate.store.clone();
        let (gate, now) = (&self.gate, self.gate.now());
        let rights = &mut self.rights;
        store
            .read_local(|tables| rights.look(tables, gate, now))
            .map_err(of_store)?
    }

    fn look_again(&mut self) -> Result<(), Status> {
        let store = self.gate.store.clone();
        store
            .read_local(|tables| self.look(tables))
            .map_err(of_store)?
    }

    async fn next(&mut self) -> Result<M, Status> {
        let stop = self.stop.clone();
        loop {
            if let Some(message) = self.ready.pop_front() {
                self.check()?;
                let claimed = self.claim.as_ref().map(|claim| claim(&message));
                if let Some(claimed) = claimed
                    && !claimed.await?
                {
                    continue;
                }
                return Ok(message);
            }
            let is_news = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    let message = "this node stops; come again";
                    return Err(refused(ErrorCode::Unavailable, message));
                }
                () = woken(&mut self.wakes) => true,
                _ = self.beat.tick() => {
                    (self.says)().await?;
                    true
                }
                event = self.subscription.next() => match event {
                    Some(Event::Changed { changes, .. }) => changes
                        .iter()
                        .any(|it| bears_rights(it.kind) || (self.matters)(it)),
                    Some(Event::Resync) => true,
                    None => {
                        let message = "this node stops; come again";
                        return Err(refused(ErrorCode::Unavailable, message));
                    }
                },
            };
            if is_news {
                self.look_again()?;
            }
        }
    }
}

/// Ends when the stream is told to look again; never when nobody can tell it.
async fn woken(wakes: &mut Option<watch::Receiver<()>>) {
    if let Some(wakes) = wakes
        && wakes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
