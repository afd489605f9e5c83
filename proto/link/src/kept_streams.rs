//! Idle streams that are kept for the next calls.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::STREAMS_KEPT_MAX;
use crate::open::CallStream;

/// Idle streams for the next calls. Opening a stream costs both sides about as much as a small
/// call. `None` means that the server ends each stream with its call.
#[derive(Debug)]
pub(crate) struct KeptStreams(Option<Arc<Mutex<IdleStreams>>>);

#[derive(Debug, Default)]
struct IdleStreams {
    streams: Vec<CallStream>,
    /// Number of calls that found no idle stream and are opening one.
    openers: usize,
}

impl KeptStreams {
    /// `keeps` is `true` if the server permits several calls on one stream.
    pub(crate) fn new(keeps: bool) -> Self {
        Self(keeps.then(Arc::default))
    }

    /// `true` if the server permits several calls on one stream.
    pub(crate) fn keeps(&self) -> bool {
        self.0.is_some()
    }

    /// Takes an idle stream. `Err` is the permission to open one.
    pub(crate) fn take(&self) -> Result<CallStream, StreamOpening> {
        let Some(idle) = &self.0 else {
            return Err(StreamOpening(None));
        };
        let mut found = idle.lock();
        found.streams.pop().ok_or_else(|| {
            found.openers += 1;
            StreamOpening(Some(idle.clone()))
        })
    }

    /// Keeps a stream whose call has ended on both sides, or closes it.
    pub(crate) fn put(&self, stream: CallStream) {
        let Some(idle) = &self.0 else { return };
        let mut idle = idle.lock();
        // An idle stream counts against the session's stream limit. If a call waits to open one,
        // keeping this stream would let that call wait for as long as the stream stays idle.
        if idle.openers == 0 && idle.streams.len() < STREAMS_KEPT_MAX {
            idle.streams.push(stream);
        }
    }
}

/// Counts a call as an opener until it is dropped, also when the call is cancelled.
#[derive(Debug)]
pub(crate) struct StreamOpening(Option<Arc<Mutex<IdleStreams>>>);

impl Drop for StreamOpening {
    fn drop(&mut self) {
        if let Some(idle) = &self.0 {
            idle.lock().openers -= 1;
        }
    }
}
