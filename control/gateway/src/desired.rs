//! Streams of desired state: look, send, and send again when the content differs.

use std::time::Duration;

use control_state::{Change, Tables};
use control_store::{Event, Store};
use proto_link::{LinkStatus, Sink};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::status;

/// Changes that come within this time are looked at together.
const GATHER: Duration = Duration::from_millis(10);

/// Where a message stands in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence {
    pub(crate) term: u64,
    pub(crate) generation: u64,
}

/// What a stream is made of.
pub(crate) struct Desire<C, M> {
    /// The whole desired state; `None` for nothing to say.
    pub(crate) content: C,
    /// The message of a content.
    pub(crate) message: M,
    /// Cheap: whether a change can matter at all.
    pub(crate) matters: fn(&Change) -> bool,
    /// Something outside of the state that the content depends on as well.
    pub(crate) beside: Option<watch::Receiver<u64>>,
}

/// Sends until the caller is gone, the store is shut down or this node no longer leads.
pub(crate) async fn stream<T, P, C, M>(
    store: &Store,
    mut desire: Desire<C, M>,
    mut out: Sink<'_, P>,
) -> Result<(), LinkStatus>
where
    T: PartialEq + Send,
    P: prost::Message,
    C: Fn(&Tables) -> Result<Option<T>, LinkStatus> + Send,
    M: Fn(Fence, &T) -> P + Send,
{
    let mut events = store.watch();
    let mut sent: Option<T> = None;
    // The first look is linearizable: an agent that comes from another node sees all that it saw.
    let mut look = store
        .read_versioned(|t, revision| ((desire.content)(t), revision))
        .await
        .map_err(|e| status::store(&e))?;
    loop {
        let (content, revision) = look;
        if let Some(content) = content?
            && sent.as_ref() != Some(&content)
        {
            let fence = Fence {
                term: store.term(),
                generation: revision.0,
            };
            out.send(&(desire.message)(fence, &content)).await?;
            sent = Some(content);
        }
        news(&mut events, &mut desire.beside, desire.matters).await?;
        if !store.is_leader() {
            return Err(LinkStatus::unavailable("this node no longer leads"));
        }
        look = store
            .read_local(|t| ((desire.content)(t), control_store::Revision(t.revision())))
            .map_err(|e| status::store(&e))?;
    }
}

/// Waits for a change that can matter, then gathers what comes close behind it.
async fn news(
    events: &mut control_store::Subscription<Change>,
    beside: &mut Option<watch::Receiver<u64>>,
    matters: fn(&Change) -> bool,
) -> Result<(), LinkStatus> {
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = changed(beside) => break,
        };
        match event {
            Some(Event::Changed { changes, .. }) if !changes.iter().any(matters) => {}
            Some(_) => break,
            None => return Err(LinkStatus::unavailable("control stops")),
        }
    }
    let end = Instant::now() + GATHER;
    while let Ok(event) = timeout_at(end, events.next()).await {
        if event.is_none() {
            return Err(LinkStatus::unavailable("control stops"));
        }
    }
    Ok(())
}

async fn changed(beside: &mut Option<watch::Receiver<u64>>) {
    let gone = match beside {
        Some(receiver) => receiver.changed().await.is_err(),
        None => true,
    };
    if gone {
        std::future::pending::<()>().await;
    }
}
