//! An open session on the client.

use quinn::{Connection, SendStream};
use tokio_util::task::TaskTracker;

use crate::frames::Frames;
use crate::kept_streams::KeptStreams;
use crate::runtime::WriteCount;

/// An open session and its unary calls in flight.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) connection: Connection,
    pub(crate) writes: WriteCount,
    pub(crate) calls: TaskTracker,
    pub(crate) kept: KeptStreams,
}

impl OpenSession {
    /// `keeps` is `true` if the server permits several calls on one stream.
    pub(crate) fn new(connection: Connection, writes: WriteCount, keeps: bool) -> Self {
        Self {
            connection,
            writes,
            calls: TaskTracker::new(),
            kept: KeptStreams::new(keeps),
        }
    }
}

/// Both halves of a call's stream.
#[derive(Debug)]
pub(crate) struct CallStream {
    pub(crate) send: SendStream,
    pub(crate) frames: Frames,
}
