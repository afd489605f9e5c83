//! The calls of one stream on the server.

use std::pin::pin;
use std::time::Duration;

use proto_identity::CallerKind;
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use crate::call_counts::CallCounts;
use crate::frame::{self, FrameError, Kind};
use crate::frames::Frames;
use crate::limits::{ANONYMOUS_REQUEST_LEN_MAX, CALL_TIME_MAX, REQUEST_LEN_MAX, REQUEST_TIME_MAX};
use crate::method::MethodSpec;
use crate::peer::Peer;
use crate::responder::Responder;
use crate::router::Router;
use crate::session::Services;
use crate::status::{Code, LinkStatus};

/// Counts a call when it is dropped. A future that is dropped before its end was cancelled, by its
/// caller or with its session, and is counted as that.
struct CountedCall<'a> {
    calls: &'a CallCounts,
    method: Option<&'static MethodSpec>,
    code: Code,
}

impl Drop for CountedCall<'_> {
    fn drop(&mut self) {
        self.calls.add(self.method, self.code);
    }
}

/// Serves the calls of one stream in turn, until one fails or is a streaming call, or the caller
/// ends the stream or cancels a call.
pub(crate) async fn serve_calls(
    peer: &Peer,
    services: &Services,
    mut frames: Frames,
    mut out: Responder,
) {
    let mut given_up = pin!(out.stopped());
    let mut is_first = true;
    loop {
        // The call is polled first: an answer that is ready is sent even if the caller's
        // cancellation arrived in the same wake.
        let goes_on = tokio::select! {
            biased;
            goes_on = serve_call(peer, services, is_first, &mut frames, &mut out) => goes_on,
            () = &mut given_up => return out.abandon(),
        };
        if !goes_on || !frames.more().await {
            return;
        }
        is_first = false;
    }
}

/// Serves one call. `true` if another may follow on the stream.
async fn serve_call(
    peer: &Peer,
    services: &Services,
    is_first: bool,
    frames: &mut Frames,
    out: &mut Responder,
) -> bool {
    let mut counted = CountedCall {
        calls: &services.counts,
        method: None,
        code: Code::Cancelled,
    };
    let method = &mut counted.method;
    let answered = answer(peer, &services.router, is_first, method, frames, out).await;
    counted.code = answered
        .as_ref()
        .map_or_else(LinkStatus::code, |_| Code::Ok);
    // Counted before the answer is sent: a caller that has its answer finds the call in the metrics.
    drop(counted);
    if let Err(status) = &answered {
        debug!(agent = %peer.name(), error = %status, "call refused or failed");
    }
    let last = !matches!(answered, Ok(StreamUse::Reusable));
    out.end(&answered.map(drop), last).await
}

/// Use of a stream after a successful call.
enum StreamUse {
    /// Another call may follow.
    Reusable,
    /// The stream ends with this call.
    Final,
}

/// Reads one request, checks that the caller may call the method, and runs the service.
async fn answer(
    peer: &Peer,
    router: &Router,
    is_first: bool,
    called: &mut Option<&'static MethodSpec>,
    frames: &mut Frames,
    out: &mut Responder,
) -> Result<StreamUse, LinkStatus> {
    let began = Instant::now();
    let (deadline_ms, (method, service), request, mut next) =
        timeout_at(began + REQUEST_TIME_MAX, async {
            let (kind, payload) = frames.next(0).await?;
            if kind != Kind::Header {
                return Err(FrameError::Unexpected.into());
            }
            let header = frame::decode_header(&payload)?;
            // The caller is judged by the header alone: a request that would be refused is not
            // buffered.
            let admitted = router.admit(header.method, peer.kind())?;
            *called = Some(admitted.0);
            let max = match peer.kind() {
                CallerKind::Anonymous => ANONYMOUS_REQUEST_LEN_MAX,
                _ => REQUEST_LEN_MAX,
            };
            let (kind, request) = frames.next(max).await?;
            if kind != Kind::Message {
                return Err(LinkStatus::from(FrameError::Unexpected));
            }
            // The end of the stream is looked for at the first call only. A caller that sent a
            // second call reuses the stream and will send a third; polling for its end costs time.
            let next = if is_first && frames.see_end().await {
                StreamUse::Final
            } else {
                StreamUse::Reusable
            };
            Ok((header.deadline_ms, admitted, request, next))
        })
        .await
        .map_err(|_| LinkStatus::deadline_exceeded("the request did not arrive"))??;
    out.expect(method.streaming);
    if method.streaming {
        next = StreamUse::Final;
    }
    let work = service.call(method, peer, request, out);
    // A watch has no end by itself. It ends with its caller or with the session.
    if method.streaming && deadline_ms == 0 {
        return work.await.map(|()| next);
    }
    let asked = Duration::from_millis(u64::from(deadline_ms));
    let limit = if asked.is_zero() {
        CALL_TIME_MAX
    } else {
        asked.min(CALL_TIME_MAX)
    };
    // Measured from the first bytes of the call on: the time to receive the request counts against
    // the deadline, as it does for the caller.
    timeout_at(began + limit, work)
        .await
        .map_err(|_| LinkStatus::deadline_exceeded("the call took too long"))?
        .map(|()| next)
}
