//! The DHCP task for the relays of switches.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use pixie_boot::link_of;
use proto_wire_dhcp::{Kind, Message};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::RelayConfig;
use crate::dhcp::{ANSWERS_MAX, PACKET_LEN_MAX, decode, destination, refuse, send, serve};
use crate::netdev;
use crate::state::Shared;

/// The listener for relays.
#[derive(Debug)]
pub(crate) struct DhcpRelay {
    shared: Arc<Shared>,
    socket: UdpSocket,
}

impl DhcpRelay {
    /// Opens the socket.
    pub(crate) fn bind(shared: Arc<Shared>, config: &RelayConfig) -> std::io::Result<Self> {
        let at = SocketAddrV4::new(config.address, shared.config.ports.dhcp);
        let socket = netdev::udp_on(&config.interface, at)?;
        Ok(Self { shared, socket })
    }

    /// Serves until stopped.
    pub(crate) async fn run(self, stop: CancellationToken) -> std::io::Result<()> {
        let this = Arc::new(self);
        let mut buffer = vec![0_u8; PACKET_LEN_MAX];
        let mut answers = JoinSet::new();
        loop {
            // As on a network: answers share writes to disk, and the socket's buffer holds the rest.
            let has_room = answers.len() < ANSWERS_MAX;
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Some(done) = answers.join_next() => done.map_err(std::io::Error::other)?,
                received = this.socket.recv_from(&mut buffer), if has_room => {
                    let (length, from) = received?;
                    let (this, packet) = (Arc::clone(&this), buffer[..length].to_vec());
                    answers.spawn(async move { this.on_packet(&packet, from).await });
                }
            }
        }
    }

    async fn on_packet(&self, bytes: &[u8], from: SocketAddr) {
        let (Some(request), IpAddr::V4(relay)) = (decode(bytes), from.ip()) else {
            return;
        };
        let desired = self.shared.desired();
        let port = match desired.relays.check(relay, &request) {
            Ok(port) => port,
            Err(reason) => return refuse(&self.shared, &request, &reason),
        };
        let Some(network) = self.network_of(&request) else {
            tracing::debug!(mac = %request.chaddr, %from, "relayed from an unknown subnet");
            return;
        };
        let Some(reply) = serve(&self.shared, network, &request).await else {
            return;
        };
        // Noted with the lease: the card boots by it, from an address that only it holds.
        if reply.kind == Kind::Ack {
            self.shared.note_relayed(request.chaddr, port);
        }
        let to = destination(&request, &reply, self.shared.config.ports.dhcp);
        send(&self.socket, &reply, to).await;
    }

    /// The network that gives addresses on the client's subnet.
    fn network_of(&self, request: &Message) -> Option<usize> {
        let link = link_of(request)?;
        let networks = &self.shared.config.networks;
        networks
            .iter()
            .position(|config| config.is_relayed && config.network.subnet.contains(&link))
    }
}
