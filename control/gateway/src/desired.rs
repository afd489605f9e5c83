//! Streams of desired state: look, send, and send again when the content differs.

use std::time::Duration;

use control_state::Tables;
use control_store::Revision;
use proto_link::{LinkStatus, Sink};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::parts::GatewayParts;
use crate::status;
use crate::wakes::Concern;

/// Where a message stands in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence {
    pub(crate) term: u64,
    pub(crate) generation: u64,
}

/// Result of a look: the whole desired state as of a revision. `None` means that there is nothing
/// to send.
pub(crate) type Look<T> = Result<(Option<T>, Revision), LinkStatus>;

/// The parts of a stream of desired state.
pub(crate) struct Desire<L, M> {
    /// Reads the whole desired state.
    pub(crate) look: L,
    /// The message of a content.
    pub(crate) message: M,
    /// When to look again.
    pub(crate) concern: Concern,
    /// Something outside of the state that the content depends on as well.
    pub(crate) beside: Option<watch::Receiver<u64>>,
    /// Least time between two looks.
    pub(crate) pause: Duration,
}

/// A look at the tables.
pub(crate) fn at_tables<T>(
    shared: &GatewayParts,
    content: impl FnOnce(&Tables) -> Result<Option<T>, LinkStatus>,
) -> Look<T> {
    let (content, revision) = shared.look(|t| (content(t), Revision(t.revision())))?;
    Ok((content?, revision))
}

/// Sends until the caller is gone, the store is shut down or this node no longer leads.
pub(crate) async fn stream<T, P, L, M>(
    shared: &GatewayParts,
    mut desire: Desire<L, M>,
    mut out: Sink<'_, P>,
) -> Result<(), LinkStatus>
where
    T: PartialEq + Send,
    P: prost::Message,
    L: Fn() -> Look<T> + Send,
    M: Fn(Fence, &T) -> P + Send,
{
    let store = &shared.store;
    let mut waiting = shared.wakes.wait_for(desire.concern);
    let mut sent: Option<T> = None;
    // The first look is linearizable: an agent that comes from another node sees all that it saw.
    let now = store.read_versioned(|_, revision| revision).await;
    shared
        .wakes
        .reached(now.map_err(|e| status::store(&e))?)
        .await;
    loop {
        let (content, revision) = (desire.look)()?;
        if let Some(content) = content
            && sent.as_ref() != Some(&content)
        {
            let fence = Fence {
                term: store.term(),
                generation: revision.0,
            };
            out.send(&(desire.message)(fence, &content)).await?;
            sent = Some(content);
        }
        if !desire.pause.is_zero() {
            sleep(desire.pause).await;
        }
        tokio::select! {
            () = waiting.woken() => {}
            () = changed(&mut desire.beside) => {}
        }
        if !store.is_leader() {
            return Err(LinkStatus::unavailable("this node no longer leads"));
        }
    }
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
