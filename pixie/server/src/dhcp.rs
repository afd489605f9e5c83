//! The DHCP task of one network: receives messages, persists leases, sends answers.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use pixie_boot::{Client, ClientClass, NoAnswer, RelayRefusal, check_direct};
use proto_wire_dhcp::{Kind, Message, code};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::config::Mode;
use crate::netdev;
use crate::state::Shared;

const CLIENT_PORT: u16 = 68;
/// Port of a ProxyDHCP server for requests after the offer (PXE 2.1 §2.2.3).
const PROXY_PORT: u16 = 4011;
/// Longest message that is received, bytes: more than an Ethernet frame holds. A longer one is cut
/// and fails to decode.
pub(crate) const PACKET_LEN_MAX: usize = 4096;
/// Requests answered concurrently. Further ones wait in the socket's receive buffer.
pub(crate) const ANSWERS_MAX: usize = 256;

/// The sockets of one network's DHCP.
#[derive(Debug)]
pub(crate) struct Dhcp {
    shared: Arc<Shared>,
    network: usize,
    socket: UdpSocket,
    proxy_socket: Option<UdpSocket>,
}

impl Dhcp {
    /// Opens the sockets.
    pub(crate) fn bind(shared: Arc<Shared>, network: usize) -> std::io::Result<Self> {
        let config = &shared.config.networks[network];
        let at = |port| SocketAddrV4::new(config.network.address, port);
        let socket = netdev::udp_on(&config.interface, at(shared.config.ports.dhcp))?;
        let proxy_socket = match config.mode {
            Mode::Server => None,
            Mode::Proxy => Some(netdev::udp_on(&config.interface, at(PROXY_PORT))?),
        };
        Ok(Self {
            shared,
            network,
            socket,
            proxy_socket,
        })
    }

    /// Serves until stopped.
    pub(crate) async fn run(self, stop: CancellationToken) -> std::io::Result<()> {
        let this = Arc::new(self);
        let mut buffer = vec![0_u8; PACKET_LEN_MAX];
        let mut proxy_buffer = vec![0_u8; PACKET_LEN_MAX];
        // Answers run concurrently so that their leases share one write to disk. In sequence, a rack
        // that is switched on would wait for one sync per machine.
        let mut answers = JoinSet::new();
        loop {
            // Without room the socket is not read. Its buffer holds the next requests, and clients
            // repeat those that do not fit.
            let has_room = answers.len() < ANSWERS_MAX;
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Some(done) = answers.join_next() => done.map_err(std::io::Error::other)?,
                received = this.socket.recv_from(&mut buffer), if has_room => {
                    let (this, packet) = (Arc::clone(&this), buffer[..received?.0].to_vec());
                    answers.spawn(async move { this.on_packet(&packet).await });
                }
                received = receive(this.proxy_socket.as_ref(), &mut proxy_buffer) => {
                    let (len, from) = received?;
                    // In sequence: without a lease there is no wait for the disk.
                    this.on_proxy_packet(&proxy_buffer[..len], from).await;
                }
            }
        }
    }

    async fn on_packet(&self, bytes: &[u8]) {
        let Some(request) = decode(bytes) else { return };
        let config = &self.shared.config.networks[self.network];
        if config.is_relayed
            && let Err(reason) = check_direct(&request)
        {
            refuse(&self.shared, &request, &reason);
            return;
        }
        let reply = match config.mode {
            Mode::Server => serve(&self.shared, self.network, &request).await,
            Mode::Proxy if request.kind == Kind::Discover => {
                let machines = &self.shared.desired().machines;
                log_refusal(&request, config.network.answer_as_proxy(machines, &request))
            }
            // Other messages on port 67 are for the network's own DHCP server.
            Mode::Proxy => None,
        };
        if let Some(reply) = reply {
            let to = destination(&request, &reply, self.shared.config.ports.dhcp);
            send(&self.socket, &reply, to).await;
        }
    }

    async fn on_proxy_packet(&self, bytes: &[u8], from: SocketAddr) {
        let Some(request) = decode(bytes) else { return };
        let config = &self.shared.config.networks[self.network];
        let machines = &self.shared.desired().machines;
        let reply = log_refusal(&request, config.network.answer_as_proxy(machines, &request));
        if let (Some(reply), Some(socket)) = (reply, &self.proxy_socket) {
            send(socket, &reply, from).await;
        }
    }
}

/// Decides as the DHCP server. When it returns a reply, the lease is on disk.
pub(crate) async fn serve(shared: &Shared, network: usize, request: &Message) -> Option<Message> {
    let settings = &shared.config.networks[network].network;
    let desired = shared.desired();
    let answer = shared.with_book(network, |book| {
        settings.answer(book, &desired.machines, request, now_ms())
    })?;
    // Ended leases are persisted too: a restart would otherwise bring a released address back as
    // held.
    let changed = match &answer {
        Ok(answer) => answer.persist,
        Err(NoAnswer::Noted { ended }) => *ended,
        Err(_) => false,
    };
    if changed {
        if let Err(error) = shared.persist_leases().await {
            // An acknowledged lease that a restart forgets would be given twice. Without an
            // acknowledgement the client asks again or takes another server.
            tracing::error!(mac = %request.chaddr, %error, "lease not persisted");
            return None;
        }
        // Control reaches a BMC by its lease. Waiting for the periodic report would delay orders to a
        // BMC that has moved.
        if Client::of(request, &settings.bmc_match).class == ClientClass::Bmc {
            shared.bmc_leases_changed.notify_one();
        }
    }
    log_refusal(request, answer).map(|answer| answer.message)
}

pub(crate) async fn send(socket: &UdpSocket, reply: &Message, to: SocketAddr) {
    let boot_file = reply.options.text(code::BOOT_FILE).unwrap_or_default();
    match socket.send_to(&reply.encode(), to).await {
        Ok(_) => tracing::info!(
            mac = %reply.chaddr, kind = ?reply.kind, address = %reply.yiaddr, %to, boot_file,
            "DHCP answer"
        ),
        Err(error) => tracing::warn!(mac = %reply.chaddr, %to, %error, "DHCP answer not sent"),
    }
}

/// Counts and logs a request that is refused because of its way.
pub(crate) fn refuse(shared: &Shared, request: &Message, reason: &RelayRefusal) {
    shared.count_refused(reason);
    // Behind relays each broadcast comes here as well, on its way past the relay.
    tracing::debug!(mac = %request.chaddr, kind = ?request.kind, %reason, "DHCP request refused");
}

/// Receives on a socket. Waits for ever if there is none.
async fn receive(
    socket: Option<&UdpSocket>,
    buffer: &mut [u8],
) -> std::io::Result<(usize, SocketAddr)> {
    match socket {
        Some(socket) => socket.recv_from(buffer).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Message> {
    Message::decode(bytes)
        .inspect_err(|error| tracing::debug!(%error, "packet dropped"))
        .ok()
}

fn log_refusal<T>(request: &Message, answer: Result<T, NoAnswer>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(reason @ NoAnswer::Lease(_)) => {
            let error = std::error::Error::source(&reason).map(ToString::to_string);
            tracing::warn!(mac = %request.chaddr, kind = ?request.kind, ?error, "no lease");
            None
        }
        Err(reason) => {
            tracing::debug!(mac = %request.chaddr, kind = ?request.kind, %reason, "no answer");
            None
        }
    }
}

/// The destination of a reply (RFC 2131 §4.1): the relay, else the client's address if it uses one,
/// else broadcast. A client without an address cannot be reached by unicast from an ordinary
/// socket, because it does not answer ARP yet; it gets a broadcast whatever its flag says.
pub(crate) fn destination(request: &Message, reply: &Message, relay_port: u16) -> SocketAddr {
    // A relay listens on the server port. The client port of the relay's host may be a client's.
    let (address, port) = if !request.giaddr.is_unspecified() {
        (request.giaddr, relay_port)
    } else if !request.ciaddr.is_unspecified() && reply.kind != Kind::Nak {
        (request.ciaddr, CLIENT_PORT)
    } else {
        (Ipv4Addr::BROADCAST, CLIENT_PORT)
    };
    SocketAddr::V4(SocketAddrV4::new(address, port))
}
