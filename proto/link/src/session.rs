//! One session on the server: its calls, its end.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use proto_identity::{CallerKind, PeerIdentity, SpiffeId};
use quinn::{Connection, VarInt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, warn};

use crate::frame::{self, FrameError, Kind};
use crate::frames::Frames;
use crate::limits::{
    ANONYMOUS_FIRST_CALL, ANONYMOUS_REQUEST_LEN_MAX, ANONYMOUS_SESSION_LIFE, ANONYMOUS_STREAMS_MAX,
    BUSY_MAX, CALL_TIME_MAX, REQUEST_LEN_MAX, REQUEST_TIME_MAX, STREAMS_AT_FIRST,
    STREAMS_PER_SESSION_MAX,
};
use crate::method::MethodSpec;
use crate::notice;
use crate::revocations::Revocations;
use crate::router::{Responder, Router};
use crate::runtime::Turns;
use crate::stats::Calls;
use crate::status::{Code, LinkStatus};

/// Why a session was closed, as the QUIC application error code says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Close {
    Done = 0,
    Expired = 1,
    Revoked = 2,
    Identity = 4,
    Stopping = 5,
    Replaced = 6,
    Elsewhere = 7,
}

impl Close {
    pub(crate) fn close(self, connection: &Connection) {
        connection.close(VarInt::from_u32(self as u32), self.reason().as_bytes());
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Expired => "the certificate has ended",
            Self::Revoked => "the identity is revoked",
            Self::Identity => "the certificate names nobody of ours",
            Self::Stopping => "control stops",
            Self::Replaced => "replaced by a newer session",
            Self::Elsewhere => "another control node serves sessions now",
        }
    }
}

/// Codes from here on say after how many milliseconds to come back. Code 3 stood for a server that
/// was full and did not say.
const BUSY_CODE: u64 = 0x1_0000;

/// Sends a caller away for some time.
pub(crate) fn send_away(connection: &Connection, wait: Duration) {
    let ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
    let code = VarInt::from_u64(BUSY_CODE + u64::from(ms)).unwrap_or(VarInt::MAX);
    let reason = format!("control is busy: come back in {ms} ms");
    connection.close(code, reason.as_bytes());
}

/// For how long a caller was sent away, as the code says; never longer than that makes sense.
pub(crate) fn sent_away(code: u64) -> Option<Duration> {
    let ms = code.checked_sub(BUSY_CODE)?;
    Some(Duration::from_millis(ms).min(BUSY_MAX))
}

/// The caller of a method.
#[derive(Clone, Debug)]
pub struct Peer {
    identity: Option<PeerIdentity>,
    remote: SocketAddr,
}

impl Peer {
    /// A caller for tests of services, without a session.
    pub fn new(identity: Option<PeerIdentity>, remote: SocketAddr) -> Self {
        Self { identity, remote }
    }

    /// What its certificate says; `None` without one.
    pub fn identity(&self) -> Option<&PeerIdentity> {
        self.identity.as_ref()
    }

    /// Its identity; `None` without a certificate.
    pub fn id(&self) -> Option<&SpiffeId> {
        self.identity.as_ref().map(|i| &i.id)
    }

    /// What it is.
    pub fn kind(&self) -> CallerKind {
        self.id()
            .map_or(CallerKind::Anonymous, SpiffeId::caller_kind)
    }

    /// Where it called from when the session began.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    fn name(&self) -> String {
        self.id()
            .map_or_else(|| "anonymous".to_owned(), ToString::to_string)
    }
}

/// What all sessions of a server share for their calls.
pub(crate) struct Services {
    pub(crate) router: Router,
    pub(crate) counts: Calls,
}

/// Serves calls until the session ends, by whichever side.
pub(crate) async fn serve(
    connection: Connection,
    turns: Turns,
    peer: Peer,
    services: Arc<Services>,
    revocations: Arc<dyn Revocations>,
    mut gate: Option<watch::Receiver<bool>>,
) {
    // Before the hello: the client goes on to the next address at once.
    if gate.as_ref().is_some_and(|gate| !*gate.borrow()) {
        Close::Elsewhere.close(&connection);
        return;
    }
    if say_hello(&connection).await.is_err() {
        return;
    }
    let began = Instant::now();
    let life = life(&peer);
    let mut end = began + first_call_within(&peer, life);
    let mut changes = revocations.changes();
    let peer = Arc::new(peer);
    let mut room = Room::of(&connection, &peer);
    let mut streams = JoinSet::new();
    let mut is_told = false;
    loop {
        changes.borrow_and_update();
        let due = peer.identity().and_then(|i| revocations.is_due(i));
        if let Some(spread) = due.filter(|_| !is_told) {
            is_told = true;
            let connection = connection.clone();
            streams.spawn(async move { notice::send(&connection, spread).await });
        }
        if peer.identity().is_some_and(|i| revocations.is_revoked(i)) {
            warn!(agent = %peer.name(), "session closed: identity is revoked");
            Close::Revoked.close(&connection);
            break;
        }
        tokio::select! {
            stream = connection.accept_bi() => match stream {
                Ok((send, recv)) => {
                    end = began + life;
                    let (peer, services) = (peer.clone(), services.clone());
                    let out = Responder::new(send, turns.clone());
                    let frames = Frames::new(recv);
                    streams.spawn(async move { calls(&peer, &services, frames, out).await });
                    room.grow(&connection, streams.len());
                }
                Err(e) => {
                    debug!(agent = %peer.name(), error = %e, "session over");
                    break;
                }
            },
            Some(done) = streams.join_next() => if let Err(e) = done {
                warn!(agent = %peer.name(), error = %e, "call ended by a panic");
            },
            () = sleep_until(end) => {
                debug!(agent = %peer.name(), "session closed: its time is over");
                Close::Expired.close(&connection);
                break;
            }
            () = shut(&mut gate) => {
                debug!(agent = %peer.name(), "session closed: another node serves sessions");
                Close::Elsewhere.close(&connection);
                break;
            }
            changed = changes.changed() => if changed.is_err() {
                // Without a source of revocations nothing may be trusted to be unrevoked.
                Close::Stopping.close(&connection);
                break;
            },
        }
    }
}

/// How many calls a session may have in flight.
struct Room {
    now: u32,
    max: u32,
}

impl Room {
    fn of(connection: &Connection, peer: &Peer) -> Self {
        if peer.kind() == CallerKind::Anonymous {
            connection.set_max_concurrent_bi_streams(VarInt::from_u32(ANONYMOUS_STREAMS_MAX));
            return Self {
                now: ANONYMOUS_STREAMS_MAX,
                max: ANONYMOUS_STREAMS_MAX,
            };
        }
        Self {
            now: STREAMS_AT_FIRST,
            max: STREAMS_PER_SESSION_MAX,
        }
    }

    /// Before the caller has to wait.
    fn grow(&mut self, connection: &Connection, in_flight: usize) {
        if self.now < self.max && in_flight * 2 >= self.now as usize {
            self.now = self.max;
            connection.set_max_concurrent_bi_streams(VarInt::from_u32(self.max));
        }
    }
}

/// Returns once sessions are served elsewhere.
async fn shut(gate: &mut Option<watch::Receiver<bool>>) {
    let Some(gate) = gate else {
        return std::future::pending().await;
    };
    // Whoever opened the gate is gone: nobody says that sessions are served here.
    drop(gate.wait_for(|is_open| !is_open).await);
}

/// Tells the client that its certificate was accepted.
async fn say_hello(connection: &Connection) -> Result<(), ()> {
    let mut hello = connection.open_uni().await.map_err(drop)?;
    hello
        .write_all(&[frame::VERSION, frame::KEEPS_STREAMS])
        .await
        .map_err(drop)?;
    hello.finish().map_err(drop)
}

fn life(peer: &Peer) -> Duration {
    match peer.identity() {
        Some(i) => Duration::from_millis(i.not_after_ms.saturating_sub(crate::now_ms())),
        None => ANONYMOUS_SESSION_LIFE,
    }
}

/// How long a session may be without any call.
fn first_call_within(peer: &Peer, life: Duration) -> Duration {
    match peer.kind() {
        CallerKind::Anonymous => ANONYMOUS_FIRST_CALL.min(life),
        _ => life,
    }
}

/// A call on its way; one that is dropped was cancelled, by its caller or with its session.
struct Counted<'a> {
    calls: &'a Calls,
    method: Option<&'static MethodSpec>,
    code: Code,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.calls.add(self.method, self.code);
    }
}

/// The calls of one stream, one after the other, until one fails or streams, or the caller ends
/// the stream or gives a call up.
async fn calls(peer: &Peer, services: &Services, mut frames: Frames, mut out: Responder) {
    let mut given_up = pin!(out.stopped());
    let mut is_first = true;
    loop {
        let goes_on = tokio::select! {
            biased;
            goes_on = call(peer, services, is_first, &mut frames, &mut out) => goes_on,
            () = &mut given_up => return out.abandon(),
        };
        if !goes_on || !frames.more().await {
            return;
        }
        is_first = false;
    }
}

/// One call; whether another may follow.
async fn call(
    peer: &Peer,
    services: &Services,
    is_first: bool,
    frames: &mut Frames,
    out: &mut Responder,
) -> bool {
    let mut counted = Counted {
        calls: &services.counts,
        method: None,
        code: Code::Cancelled,
    };
    let method = &mut counted.method;
    let answered = answer(peer, &services.router, is_first, method, frames, out).await;
    counted.code = answered
        .as_ref()
        .map_or_else(LinkStatus::code, |_| Code::Ok);
    drop(counted);
    if let Err(status) = &answered {
        debug!(agent = %peer.name(), error = %status, "call refused or failed");
    }
    let last = !matches!(answered, Ok(Next::Call));
    out.end(&answered.map(drop), last).await
}

/// What may come on a stream after a call that worked.
enum Next {
    Call,
    Nothing,
}

async fn answer(
    peer: &Peer,
    router: &Router,
    is_first: bool,
    called: &mut Option<&'static MethodSpec>,
    frames: &mut Frames,
    out: &mut Responder,
) -> Result<Next, LinkStatus> {
    let began = Instant::now();
    let (deadline_ms, (method, service), request, mut next) =
        timeout_at(began + REQUEST_TIME_MAX, async {
            let (kind, payload) = frames.next(0).await?;
            if kind != Kind::Header {
                return Err(FrameError::Unexpected.into());
            }
            let header = frame::decode_header(&payload)?;
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
            // Who has called a second time will call again: to look for an end costs time.
            let next = if is_first && frames.see_end().await {
                Next::Nothing
            } else {
                Next::Call
            };
            Ok((header.deadline_ms, admitted, request, next))
        })
        .await
        .map_err(|_| LinkStatus::deadline_exceeded("the request did not arrive"))??;
    out.expect(method.streaming);
    if method.streaming {
        next = Next::Nothing;
    }
    let work = service.call(method, peer, request, out);
    if method.streaming && deadline_ms == 0 {
        return work.await.map(|()| next);
    }
    let asked = Duration::from_millis(u64::from(deadline_ms));
    let limit = if asked.is_zero() {
        CALL_TIME_MAX
    } else {
        asked.min(CALL_TIME_MAX)
    };
    timeout_at(began + limit, work)
        .await
        .map_err(|_| LinkStatus::deadline_exceeded("the call took too long"))?
        .map(|()| next)
}
