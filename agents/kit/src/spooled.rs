//! The contract between a spool on disk and its events.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// An event that can wait in a [`DiskSpool`](crate::DiskSpool).
pub trait Spooled:
    Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Subject of an event. Of two events with the same subject the older one is dropped first.
    type Key: Ord;
    /// The subject of this event.
    fn key(&self) -> Self::Key;
}

/// The result of the delivery of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Control has the event, or has refused it for good.
    Done,
    /// Control did not answer; the event is delivered again.
    Away,
}
