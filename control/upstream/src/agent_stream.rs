//! Streams of orders for agents of the published stack. They are level-triggered: an agent that
//! reconnects gets every order that still holds.
//!
//! Invariant: nothing is sent that the caller's token does not allow at that moment; when the
//! token or its role ends, so does the stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use control_gate::Caller;
use control_gate::ServiceContext;
use control_gate::refusal::{of_store, refused};
use control_gate::{Rights, bears_rights};
use control_state::{Change, ErrorCode, Tables};
use control_store::{ChangeEvent, Subscription};
use futures::{Stream, stream};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::Upstream;
use crate::published::StreamSlot;
use crate::signs_of_life::Beat;
use crate::stream_plan::{MessageSource, SendClaim, StreamPlan};

/// Heartbeat interval of an open stream: how often the agent is reported alive, and how often the
/// expiry of its token is checked.
const BEAT: Duration = Duration::from_secs(30);

/// A stream of messages.
pub(crate) type AgentStream<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

/// An open stream: what it sends, and what makes it look again.
struct OpenAgentStream<M> {
    gate: Arc<ServiceContext>,
    stop: CancellationToken,
    rights: Rights,
    look: MessageSource<M>,
    claim: Option<SendClaim<M>>,
    wakes: Option<watch::Receiver<()>>,
    matters: fn(&Change) -> bool,
    says: Beat,
    subscription: Subscription<Change>,
    ready: VecDeque<M>,
    beat: Interval,
    _place: StreamSlot,
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
    let mut open = OpenAgentStream {
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
    // The subscription begins before the first read: a change between the two is seen twice rather
    // than missed. The read is linearizable, because the agent may come from a node that was ahead.
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

impl<M> OpenAgentStream<M> {
    /// Authorises again, then queues the messages of the current state.
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
                // The messages were queued some time ago: a token revoked since must get none of
                // them.
                self.check()?;
                // The claim replicates who takes the order. Without it two streams, on two control
                // nodes, could carry out the same order twice.
                let claimed = self.claim.as_ref().map(|claim| claim(&message));
                if let Some(claimed) = claimed
                    && !claimed.await?
                {
                    continue;
                }
                return Ok(message);
            }
            // Biased, so that a stop or a wake is not delayed by a flood of changes.
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
                    Some(ChangeEvent::Changed { changes, .. }) => changes
                        .iter()
                        .any(|change| bears_rights(change.kind) || (self.matters)(change)),
                    // Changes were missed. The stream is level-triggered, so one more look is
                    // enough.
                    Some(ChangeEvent::Resync) => true,
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
