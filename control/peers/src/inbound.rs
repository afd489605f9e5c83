//! The side that is called.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use control_state::ControlNode;
use control_store::{Channel, StateMachine, Store};
use proto_bounds::{Place, Places, network};
use proto_identity::{CertificateDer, PeerIdentity, Subject};
use quinn::{Connection, ConnectionError, Incoming, VarInt};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::PeerLink;
use crate::settings::{
    HANDSHAKE_TIME_MAX, HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX, HANDSHAKES_UNPROVED_MAX,
    REMOVAL_LOOK, STOP_TIME_MAX,
};

/// Why a connection is ended, as QUIC's application error code says it.
const STOPPING: u32 = 1;
const EXPIRED: u32 = 2;
pub(crate) const REMOVED: u32 = 3;

impl PeerLink {
    /// Answers the other nodes until `stop`.
    pub async fn run(self, store: Store, stop: CancellationToken) {
        self.run_with(store, is_removed, stop).await;
    }

    /// As [`run`](Self::run) for a store of another state: `is_removed` says whether a node must
    /// be turned away.
    pub async fn run_with<M: StateMachine>(
        self,
        store: Store<M>,
        is_removed: fn(&Store<M>, u64) -> bool,
        stop: CancellationToken,
    ) {
        let handshakes = Places::new(HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                incoming = self.0.endpoint.accept() => {
                    let Some(incoming) = incoming else { break };
                    let Some((incoming, place)) = admit(incoming, &handshakes) else {
                        continue;
                    };
                    let store = store.clone();
                    connections.spawn(async move {
                        if let Some((connection, caller)) = shake(incoming, place).await {
                            answer(connection, caller, &store, is_removed).await;
                        }
                    });
                }
                Some(done) = connections.join_next() => if let Err(e) = done {
                    warn!(error = %e, "a peer's connection ended by a panic");
                },
            }
        }
        self.0
            .endpoint
            .close(VarInt::from_u32(STOPPING), b"the node stops");
        drop(timeout(STOP_TIME_MAX, self.0.endpoint.wait_idle()).await);
        connections.shutdown().await;
    }
}

/// The node that a verified certificate names, and the certificate's end.
struct Caller {
    node: u64,
    not_after_ms: u64,
}

/// Takes a caller, asks it to prove its address, or refuses it; never waits.
fn admit(
    incoming: Incoming,
    handshakes: &Arc<Places<IpAddr>>,
) -> Option<(Incoming, Place<IpAddr>)> {
    let address = network(incoming.remote_address().ip());
    if handshakes.taken() >= HANDSHAKES_UNPROVED_MAX && incoming.may_retry() {
        // Fails only for callers that may not be asked.
        drop(incoming.retry());
        return None;
    }
    let Some(place) = handshakes.take(address) else {
        incoming.refuse();
        return None;
    };
    Some((incoming, place))
}

async fn shake(incoming: Incoming, place: Place<IpAddr>) -> Option<(Connection, Caller)> {
    let remote = incoming.remote_address();
    let shaken = timeout(HANDSHAKE_TIME_MAX, async { incoming.accept()?.await }).await;
    drop(place);
    let connection = match shaken {
        Ok(Ok(connection)) => connection,
        Ok(Err(e @ ConnectionError::TransportError(_))) => {
            info!(%remote, error = %e, "somebody who is no control node of this cluster called");
            return None;
        }
        Ok(Err(e)) => {
            debug!(%remote, error = %e, "handshake broke");
            return None;
        }
        Err(_) => {
            debug!(%remote, "handshake took too long");
            return None;
        }
    };
    let Some(caller) = identify(&connection) else {
        info!(%remote, "a certificate that names no control node");
        return None;
    };
    Some((connection, caller))
}

async fn answer<M: StateMachine>(
    connection: Connection,
    caller: Caller,
    store: &Store<M>,
    is_removed: fn(&Store<M>, u64) -> bool,
) {
    let Caller { node, not_after_ms } = caller;
    if is_removed(store, node) {
        turn_away(&connection, node);
        return;
    }
    let life = Duration::from_millis(not_after_ms.saturating_sub(store.now().ms()));
    serve(connection, store, node, is_removed, Instant::now() + life).await;
}

fn turn_away(connection: &Connection, node: u64) {
    warn!(node, "a node that was removed called");
    let reason = format!("node {node} was removed from the cluster");
    connection.close(VarInt::from_u32(REMOVED), reason.as_bytes());
}

fn identify(connection: &Connection) -> Option<Caller> {
    let chain = connection.peer_identity()?;
    let chain = chain.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    let peer = PeerIdentity::from_certificate(chain.first()?).ok()?;
    match peer.id.subject() {
        Subject::Peer { node } => Some(Caller {
            node: *node,
            not_after_ms: peer.not_after_ms,
        }),
        _ => None,
    }
}

fn is_removed(store: &Store, node: u64) -> bool {
    let removed = store.read_local(|t| {
        let known = t.get::<ControlNode>(&node);
        known.is_some_and(|it| it.removed_at.is_some())
    });
    removed.unwrap_or(true)
}

async fn serve<M: StateMachine>(
    connection: Connection,
    store: &Store<M>,
    node: u64,
    is_removed: fn(&Store<M>, u64) -> bool,
    end: Instant,
) {
    let mut channels = JoinSet::new();
    let mut look = interval(REMOVAL_LOOK);
    loop {
        tokio::select! {
            // It may have been removed since it connected, and needs no new channel to write.
            _ = look.tick() => if is_removed(store, node) {
                turn_away(&connection, node);
                break;
            },
            stream = connection.accept_bi() => match stream {
                Ok(_) if is_removed(store, node) => {
                    turn_away(&connection, node);
                    break;
                }
                Ok((send, receive)) => {
                    let store = store.clone();
                    channels.spawn(async move {
                        let channel = Channel::over(receive, send);
                        if let Err(e) = store.serve_peer(node, channel).await {
                            log(node, &e);
                        }
                    });
                }
                Err(e) => {
                    debug!(node, error = %e, "a peer's connection is over");
                    break;
                }
            },
            Some(done) = channels.join_next() => if let Err(e) = done {
                warn!(node, error = %e, "a peer's channel ended by a panic");
            },
            () = sleep_until(end) => {
                connection.close(VarInt::from_u32(EXPIRED), b"the certificate has ended");
                break;
            }
        }
    }
}

/// Broken channels are daily business; somebody who is turned away is not.
fn log(node: u64, error: &std::io::Error) {
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        warn!(node, error = %error, "a peer was turned away");
    } else {
        debug!(node, error = %error, "a peer's channel broke");
    }
}
