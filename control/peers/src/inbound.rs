//! The listening side: handshakes, and connections of other control nodes.

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

use crate::close_code::{EXPIRED, REMOVED, STOPPING};
use crate::link::PeerLink;
use crate::settings::{
    HANDSHAKE_TIME_MAX, HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX, HANDSHAKES_UNPROVED_MAX,
    REMOVAL_CHECK, STOP_TIME_MAX,
};

impl PeerLink {
    /// Serves the other control nodes until `stop`.
    pub async fn run(self, store: Store, stop: CancellationToken) {
        self.run_with(store, is_removed, stop).await;
    }

    /// As [`run`](Self::run), for a store with another state machine. `is_removed` returns `true`
    /// if a node was removed from the cluster and must be turned away.
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
                        if let Some((connection, caller)) = complete_handshake(incoming, place).await {
                            serve_caller(connection, caller, &store, is_removed).await;
                        }
                    });
                }
                Some(done) = connections.join_next() => if let Err(e) = done {
                    warn!(error = %e, "the connection of a peer ended with a panic");
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

/// A node with a verified certificate, and the end of that certificate.
struct PeerCaller {
    node: u64,
    not_after_ms: u64,
}

/// Accepts a handshake, asks the caller to prove its address (QUIC retry), or refuses it. Never
/// waits.
fn admit(
    incoming: Incoming,
    handshakes: &Arc<Places<IpAddr>>,
) -> Option<(Incoming, Place<IpAddr>)> {
    // Counted per address: a QUIC handshake costs a signature, and one host must not take the
    // places of the nodes.
    let address = network(incoming.remote_address().ip());
    if handshakes.taken() >= HANDSHAKES_UNPROVED_MAX && incoming.may_retry() {
        // A source address is forged easily. A forger gets no answer to the retry, so it cannot
        // take the places of the node whose address it uses. The call fails only for connections
        // that may not be retried, which was checked.
        drop(incoming.retry());
        return None;
    }
    let Some(place) = handshakes.take(address) else {
        incoming.refuse();
        return None;
    };
    Some((incoming, place))
}

/// Completes a handshake within its time limit. `None` means that there is no connection.
async fn complete_handshake(
    incoming: Incoming,
    place: Place<IpAddr>,
) -> Option<(Connection, PeerCaller)> {
    let remote = incoming.remote_address();
    let shaken = timeout(HANDSHAKE_TIME_MAX, async { incoming.accept()?.await }).await;
    drop(place);
    let connection = match shaken {
        Ok(Ok(connection)) => connection,
        Ok(Err(e @ ConnectionError::TransportError(_))) => {
            info!(%remote, error = %e, "a caller is not a control node of this cluster");
            return None;
        }
        Ok(Err(e)) => {
            debug!(%remote, error = %e, "a handshake failed");
            return None;
        }
        Err(_) => {
            debug!(%remote, "a handshake timed out");
            return None;
        }
    };
    let Some(caller) = identify(&connection) else {
        info!(%remote, "the certificate of a caller names no control node");
        return None;
    };
    Some((connection, caller))
}

/// Serves one connection, unless the node was removed.
async fn serve_caller<M: StateMachine>(
    connection: Connection,
    caller: PeerCaller,
    store: &Store<M>,
    is_removed: fn(&Store<M>, u64) -> bool,
) {
    let PeerCaller { node, not_after_ms } = caller;
    if is_removed(store, node) {
        turn_away(&connection, node);
        return;
    }
    // QUIC checks the certificate in the handshake only. Without this end a connection would
    // outlive the certificate by as long as it stays open.
    let life = Duration::from_millis(not_after_ms.saturating_sub(store.now().ms()));
    serve(connection, store, node, is_removed, Instant::now() + life).await;
}

/// Closes the connection of a node that was removed, with a code that says so.
fn turn_away(connection: &Connection, node: u64) {
    warn!(node, "turned away a node that was removed");
    let reason = format!("node {node} was removed from the cluster");
    connection.close(VarInt::from_u32(REMOVED), reason.as_bytes());
}

/// The node in the certificate of a connection; `None` if it is not one of a control node.
fn identify(connection: &Connection) -> Option<PeerCaller> {
    let chain = connection.peer_identity()?;
    let chain = chain.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    let peer = PeerIdentity::from_certificate(chain.first()?).ok()?;
    match peer.id.subject() {
        Subject::Peer { node } => Some(PeerCaller {
            node: *node,
            not_after_ms: peer.not_after_ms,
        }),
        _ => None,
    }
}

/// `true` if the node was removed, or if the store cannot be read.
fn is_removed(store: &Store, node: u64) -> bool {
    let removed = store.read_local(|tables| {
        let known = tables.get::<ControlNode>(&node);
        known.is_some_and(|node| node.removed_at.is_some())
    });
    // A store that cannot be read is stopping: nobody is let in.
    removed.unwrap_or(true)
}

/// Serves the channels of a connection until it ends, the node is removed or the certificate
/// expires.
async fn serve<M: StateMachine>(
    connection: Connection,
    store: &Store<M>,
    node: u64,
    is_removed: fn(&Store<M>, u64) -> bool,
    end: Instant,
) {
    let mut channels = JoinSet::new();
    let mut removal_check = interval(REMOVAL_CHECK);
    loop {
        tokio::select! {
            // A node that was removed after it connected can still send entries and votes on
            // channels that are open, so it is not enough to check when a channel opens.
            _ = removal_check.tick() => if is_removed(store, node) {
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
                    debug!(node, error = %e, "the connection of a peer ended");
                    break;
                }
            },
            Some(done) = channels.join_next() => if let Err(e) = done {
                warn!(node, error = %e, "the channel of a peer ended with a panic");
            },
            () = sleep_until(end) => {
                connection.close(VarInt::from_u32(EXPIRED), b"the certificate has expired");
                break;
            }
        }
    }
}

/// Logs the end of a channel: a warning if the peer was turned away, because broken channels are
/// common and refusals are not.
fn log(node: u64, error: &std::io::Error) {
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        warn!(node, error = %error, "a peer was turned away");
    } else {
        debug!(node, error = %error, "the channel of a peer broke");
    }
}
