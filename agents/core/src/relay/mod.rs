//! The relay of DHCP requests from machines without a tenant to the boot server, with the port of
//! each request as a witness for its cable.
//!
//! Invariants:
//! - Requests are taken from ports that the switch observes as private in a segment: those of
//!   machines without a tenant. Answers go out of such a port, and only the one that option 82
//!   names, to a request of that port.
//! - A machine cannot speak as a relay or a server.

mod decision;
mod dropped;
mod open_requests;
mod port_socket;
mod server_socket;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use agents_kit::Steps;
use agents_nos::model::Membership;
pub use decision::{Delivery, Relay};
pub use dropped::Dropped;
use parking_lot::Mutex;
use port_socket::PortSocket;
use proto_types::MacAddr;
use proto_wire_lldp::mac_of;
use server_socket::{Arrived, ServerSocket, is_trusted};
pub use settings::RelayConfig;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::reconcile::Outcome;

/// Ports with a relay at most; further ones get none. No switch has as many.
const PORTS_MAX: usize = 1024;
/// Pause before a failed socket is opened again.
const REOPEN: Duration = Duration::from_secs(1);
/// Longest answer that is received, bytes. A longer one is cut, and dropped as malformed.
const ANSWER_MAX: usize = 4096;

/// A port whose requests are relayed.
struct PortTask {
    stop: CancellationToken,
}

/// The sockets of the ports, by name.
type Sockets = Arc<Mutex<BTreeMap<String, (Arc<PortSocket>, MacAddr)>>>;

/// Everything that the tasks of a relay share.
#[derive(Clone)]
struct Shared {
    relay: Arc<Relay>,
    server: Arc<ServerSocket>,
    sockets: Sockets,
    /// Ports of machines and firewalls, in whatever place they are.
    fronts: Arc<Mutex<BTreeSet<String>>>,
    steps: Steps,
    since: Instant,
}

/// Relays until `stop`.
pub(crate) async fn run(
    relay: Relay,
    steps: Steps,
    mut observed: watch::Receiver<Outcome>,
    stop: CancellationToken,
) {
    let Some(server) = bind(&relay, &stop).await else {
        return;
    };
    let shared = Shared {
        relay: Arc::new(relay),
        server: Arc::new(server),
        sockets: Sockets::default(),
        fronts: Arc::default(),
        steps,
        since: Instant::now(),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(run_answers(shared.clone(), stop.clone()));
    let mut ports: BTreeMap<String, PortTask> = BTreeMap::new();
    loop {
        let wanted = look(&shared, &observed.borrow_and_update());
        ports.retain(|name, port| {
            let stays = wanted.contains(name);
            if !stays {
                port.stop.cancel();
            }
            stays
        });
        for name in wanted {
            if !ports.contains_key(&name) && ports.len() < PORTS_MAX {
                let stop = stop.child_token();
                tasks.spawn(run_port(shared.clone(), name.clone(), stop.clone()));
                ports.insert(name, PortTask { stop });
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            changed = observed.changed() => if changed.is_err() { break },
            Some(ended) = tasks.join_next() => end_on_panic(ended),
        }
    }
    stop.cancel();
    while let Some(ended) = tasks.join_next().await {
        end_on_panic(ended);
    }
}

/// Passes a panic of a task on: a relay without its answers would look alive.
fn end_on_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Binds the socket towards the boot server. `None` means stopped before.
async fn bind(relay: &Relay, stop: &CancellationToken) -> Option<ServerSocket> {
    let address = SocketAddrV4::new(relay.address(), relay.server().port());
    loop {
        match ServerSocket::bind(address).await {
            Ok(socket) => return Some(socket),
            // At boot the management interface may come later than the agent.
            Err(error) => tracing::warn!(%address, %error, "DHCP relay not open"),
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = sleep(REOPEN) => {}
        }
    }
}

/// Notes the ports of machines and firewalls, where no boot server is, and returns the ports to
/// relay.
fn look(shared: &Shared, outcome: &Outcome) -> Vec<String> {
    let ports = outcome.state.model.ports.keys().map(ToString::to_string);
    *shared.fronts.lock() = ports.filter(|port| shared.relay.is_front(port)).collect();
    relayed_ports(outcome)
}

/// The ports of machines without a tenant: no other port is private.
fn relayed_ports(outcome: &Outcome) -> Vec<String> {
    let ports = outcome.state.model.ports.iter();
    let private = ports.filter(|(_, port)| {
        matches!(
            port.membership,
            Membership::Segment {
                is_private: true,
                ..
            }
        )
    });
    private.map(|(name, _)| name.to_string()).collect()
}

/// Relays the requests of one port until `stop`, also after the port was gone.
async fn run_port(shared: Shared, port: String, stop: CancellationToken) {
    loop {
        let served = tokio::select! {
            () = stop.cancelled() => break,
            served = serve_port(&shared, &port) => served,
        };
        shared.sockets.lock().remove(&port);
        if let Err(error) = served {
            tracing::debug!(port, %error, "DHCP relay interrupted");
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep(REOPEN) => {}
        }
    }
    shared.sockets.lock().remove(&port);
}

async fn serve_port(shared: &Shared, port: &str) -> std::io::Result<()> {
    let socket = Arc::new(PortSocket::open(port)?);
    let entry = (Arc::clone(&socket), MacAddr(mac_of(port)?));
    shared.sockets.lock().insert(port.to_owned(), entry);
    loop {
        let frame = socket.recv().await?;
        let now_us = u64::try_from(shared.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        match shared.relay.request(port, &frame, now_us) {
            Ok(message) => {
                let sent = shared.server.send_to(&message, shared.relay.server()).await;
                shared.steps.ended("dhcp_request", &sent);
            }
            Err(reason) => {
                shared.steps.count("dhcp_request", reason.as_str());
                tracing::debug!(port, %reason, "DHCP request dropped");
            }
        }
    }
}

async fn run_answers(shared: Shared, stop: CancellationToken) {
    let mut buffer = vec![0_u8; ANSWER_MAX];
    loop {
        let received = tokio::select! {
            () = stop.cancelled() => return,
            received = shared.server.recv(&mut buffer) => received,
        };
        // An error is a refused datagram of before (ICMP): the socket stays usable.
        let Ok(Arrived {
            length,
            from,
            interface,
        }) = received
        else {
            tokio::task::yield_now().await;
            continue;
        };
        if !is_trusted(interface.as_deref(), &shared.fronts.lock()) {
            let reason = Dropped::ForgedServer;
            shared.steps.count("dhcp_answer", reason.as_str());
            tracing::debug!(%from, ?interface, %reason, "DHCP answer dropped");
            continue;
        }
        let bytes = buffer.get(..length).unwrap_or_default();
        let mut socket = None;
        let answer = shared.relay.answer(bytes, from, |port| {
            let (found, mac) = shared.sockets.lock().get(port).cloned()?;
            socket = Some(found);
            Some(mac)
        });
        match (answer, socket) {
            (Ok(delivery), Some(socket)) => {
                let sent = socket.send(&delivery.frame).await;
                shared.steps.ended("dhcp_answer", &sent);
            }
            (Err(reason), _) => {
                shared.steps.count("dhcp_answer", reason.as_str());
                tracing::debug!(%from, %reason, "DHCP answer dropped");
            }
            (Ok(_), None) => {}
        }
    }
}
