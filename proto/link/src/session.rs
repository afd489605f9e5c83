//! One session on the server: accepts its calls and ends it.

use std::sync::Arc;
use std::time::Duration;

use proto_identity::CallerKind;
use quinn::{Connection, VarInt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use crate::call::serve_calls;
use crate::call_counts::CallCounts;
use crate::close::CloseReason;
use crate::frame;
use crate::frames::Frames;
use crate::limits::{
    ANONYMOUS_FIRST_CALL, ANONYMOUS_SESSION_LIFE, ANONYMOUS_STREAMS_MAX, STREAMS_AT_FIRST,
    STREAMS_PER_SESSION_MAX,
};
use crate::notice;
use crate::peer::Peer;
use crate::responder::Responder;
use crate::revocations::Revocations;
use crate::router::Router;
use crate::runtime::WriteCount;

/// The services and call counters that all sessions of a server share.
pub(crate) struct Services {
    pub(crate) router: Router,
    pub(crate) counts: CallCounts,
}

/// Serves calls until either side ends the session. `gate` is `false` while sessions with a
/// certificate are served by another node; `None` means they are always served here.
pub(crate) async fn serve(
    connection: Connection,
    writes: WriteCount,
    peer: Peer,
    services: Arc<Services>,
    revocations: Arc<dyn Revocations>,
    mut gate: Option<watch::Receiver<bool>>,
) {
    if !open(&connection, gate.as_ref()).await {
        return;
    }
    let began = Instant::now();
    let life = life(&peer);
    let mut end = began + first_call_within(&peer, life);
    // The first pass of the loop repeats the check of `handle`: a revocation between the two would
    // otherwise be seen by neither.
    let mut changes = revocations.changes();
    let peer = Arc::new(peer);
    let mut allowance = StreamAllowance::of(&connection, &peer);
    // Dropped with this function, which aborts the calls: none outlives a revoked or expired
    // session.
    let mut streams = JoinSet::new();
    let mut is_told = false;
    loop {
        // Before the list is read: a revocation between the two must wake this loop again.
        changes.borrow_and_update();
        let due = peer.identity().and_then(|i| revocations.is_due(i));
        // One notice per session: the agent opens a new session with the renewed certificate, and
        // further changes meanwhile must not restart its renewal.
        if let Some(spread) = due.filter(|_| !is_told) {
            is_told = true;
            let connection = connection.clone();
            streams.spawn(async move { notice::send(&connection, spread).await });
        }
        if peer.identity().is_some_and(|i| revocations.is_revoked(i)) {
            warn!(agent = %peer.name(), "session closed: identity is revoked");
            CloseReason::Revoked.close(&connection);
            break;
        }
        tokio::select! {
            stream = connection.accept_bi() => match stream {
                Ok((send, recv)) => {
                    // The first call lifts the shorter bound of an anonymous session.
                    end = began + life;
                    let (peer, services) = (peer.clone(), services.clone());
                    let out = Responder::new(send, writes.clone());
                    let frames = Frames::new(recv);
                    streams.spawn(async move { serve_calls(&peer, &services, frames, out).await });
                    allowance.grow(&connection, streams.len());
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
                debug!(agent = %peer.name(), "session closed: its lifetime is over");
                CloseReason::Expired.close(&connection);
                break;
            }
            () = shut(&mut gate) => {
                debug!(agent = %peer.name(), "session closed: another node serves sessions");
                CloseReason::Elsewhere.close(&connection);
                break;
            }
            changed = changes.changed() => if changed.is_err() {
                // Without a source of revocations a revoked agent would keep its session.
                CloseReason::Stopping.close(&connection);
                break;
            },
        }
    }
}

/// The stream limit of a session: calls that it may have in flight.
struct StreamAllowance {
    now: u32,
    max: u32,
}

impl StreamAllowance {
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

    /// Raises the limit when half of it is in use, one round trip before the caller would have to
    /// wait.
    fn grow(&mut self, connection: &Connection, in_flight: usize) {
        if self.now < self.max && in_flight * 2 >= self.now as usize {
            self.now = self.max;
            connection.set_max_concurrent_bi_streams(VarInt::from_u32(self.max));
        }
    }
}

/// Returns once another node serves sessions.
async fn shut(gate: &mut Option<watch::Receiver<bool>>) {
    let Some(gate) = gate else {
        return std::future::pending().await;
    };
    // A dropped sender counts as closed: no one vouches any longer that this node serves sessions.
    drop(gate.wait_for(|is_open| !is_open).await);
}

/// Sends the hello if this node serves the session. `false` if the session has ended.
async fn open(connection: &Connection, gate: Option<&watch::Receiver<bool>>) -> bool {
    // The gate is checked before the hello: a client that has seen no hello dials the next address
    // at once, without a backoff.
    if gate.is_some_and(|gate| !*gate.borrow()) {
        CloseReason::Elsewhere.close(connection);
        return false;
    }
    say_hello(connection).await.is_ok()
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

/// Lifetime of a session: the rest of its certificate's validity.
fn life(peer: &Peer) -> Duration {
    match peer.identity() {
        // TLS has checked the validity at the handshake only; without this bound an agent that never
        // renews would keep its session.
        Some(i) => Duration::from_millis(i.not_after_ms.saturating_sub(crate::now_ms())),
        None => ANONYMOUS_SESSION_LIFE,
    }
}

/// Time within which the first call must begin.
fn first_call_within(peer: &Peer, life: Duration) -> Duration {
    match peer.kind() {
        // Anonymous places are few. A stranger that opens sessions and never calls must not hold them
        // for the full lifetime.
        CallerKind::Anonymous => ANONYMOUS_FIRST_CALL.min(life),
        _ => life,
    }
}
