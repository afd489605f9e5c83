//! An open session as its caller has it, and the streams that outlive a call.

use std::sync::Arc;

use parking_lot::Mutex;
use quinn::{Connection, SendStream};
use tokio_util::task::TaskTracker;

use crate::frames::Frames;
use crate::limits::STREAMS_KEPT_MAX;
use crate::runtime::Turns;

/// An open session and its unary calls in flight.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) connection: Connection,
    pub(crate) turns: Turns,
    pub(crate) calls: TaskTracker,
    pub(crate) kept: Kept,
}

impl OpenSession {
    /// `keeps` says whether the server lets calls follow each other on one stream.
    pub(crate) fn new(connection: Connection, turns: Turns, keeps: bool) -> Self {
        Self {
            connection,
            turns,
            calls: TaskTracker::new(),
            kept: Kept(keeps.then(Arc::default)),
        }
    }
}

/// Both halves of a call's stream.
#[derive(Debug)]
pub(crate) struct CallStream {
    pub(crate) send: SendStream,
    pub(crate) frames: Frames,
}

/// Idle streams for the next calls: to open one for each costs both sides about as much as the
/// call. Nothing where the server ends each stream with its call.
#[derive(Debug)]
pub(crate) struct Kept(Option<Arc<Mutex<Idle>>>);

#[derive(Debug, Default)]
struct Idle {
    streams: Vec<CallStream>,
    /// Calls that found no stream here and open one.
    openers: usize,
}

impl Kept {
    pub(crate) fn keeps(&self) -> bool {
        self.0.is_some()
    }

    /// A stream, or leave to open one.
    pub(crate) fn take(&self) -> Result<CallStream, Opening> {
        let Some(idle) = &self.0 else {
            return Err(Opening(None));
        };
        let mut found = idle.lock();
        found.streams.pop().ok_or_else(|| {
            found.openers += 1;
            Opening(Some(idle.clone()))
        })
    }

    /// Keeps a stream whose call is over on both sides.
    pub(crate) fn put(&self, stream: CallStream) {
        let Some(idle) = &self.0 else { return };
        let mut idle = idle.lock();
        // Streams are few: who waits to open one would wait for as long as this one is kept.
        if idle.openers == 0 && idle.streams.len() < STREAMS_KEPT_MAX {
            idle.streams.push(stream);
        }
    }
}

/// Held while a stream is being opened.
#[derive(Debug)]
pub(crate) struct Opening(Option<Arc<Mutex<Idle>>>);

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(idle) = &self.0 {
            idle.lock().openers -= 1;
        }
    }
}
