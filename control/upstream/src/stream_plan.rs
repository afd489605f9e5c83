//! The parts of a stream to a published agent.

use std::future::Future;
use std::pin::Pin;

use control_state::{Change, Tables};
use tokio::sync::watch;
use tonic::Status;

use crate::published::StreamSlot;
use crate::signs_of_life::Beat;

/// Reads the state and returns the messages that this stream has not sent yet.
pub(crate) type MessageSource<M> = Box<dyn FnMut(&Tables) -> Vec<M> + Send>;

/// Claims a message for this stream just before it is sent; `false` skips the message.
pub(crate) type SendClaim<M> =
    Box<dyn Fn(&M) -> Pin<Box<dyn Future<Output = Result<bool, Status>> + Send>> + Send + Sync>;

/// The parts of a stream to open.
pub(crate) struct StreamPlan<M> {
    pub(crate) look: MessageSource<M>,
    /// `None` means that every message is sent.
    pub(crate) claim: Option<SendClaim<M>>,
    /// Tells, beside changes of the state, that there may be something to send.
    pub(crate) wakes: Option<watch::Receiver<()>>,
    /// `true` if a change can lead to a message. Must be cheap: it runs for every change.
    pub(crate) matters: fn(&Change) -> bool,
    pub(crate) beat: Beat,
    /// Held as long as the stream stands.
    pub(crate) place: StreamSlot,
}
