//! Router advertisements on one interface: periodic, and in answer to solicitations.
//!
//! Pixie is not an IPv6 router: the lifetime is 0 and there is no prefix. The advertisement only
//! keeps iPXE from waiting for one.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::ndp::{RouterAdvertisement, is_solicitation};
use crate::netdev;

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Hop limit of an advertisement. Receivers drop any other (RFC 4861 §6.1.2).
const HOP_LIMIT: u32 = 255;
/// Interval of periodic advertisements.
const PERIOD: Duration = Duration::from_secs(10);
/// Shortest time between two answers to solicitations. Solicitations within it get no answer.
const ANSWER_GAP: Duration = Duration::from_millis(100);
/// Longest solicitation that is received, bytes. A longer one is cut.
const PACKET_LEN_MAX: usize = 2048;

/// An advertiser with its socket.
#[derive(Debug)]
pub(crate) struct Advertiser {
    socket: UdpSocket,
    packet: Vec<u8>,
    to: SocketAddr,
}

impl Advertiser {
    /// Opens the raw socket; needs `CAP_NET_RAW`.
    pub(crate) fn bind(interface: &str) -> io::Result<Self> {
        let index = netdev::index(interface)?;
        let source = netdev::mac(interface)?;
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.set_multicast_hops_v6(HOP_LIMIT)?;
        socket.set_unicast_hops_v6(HOP_LIMIT)?;
        socket.set_multicast_if_v6(index)?;
        // This host must not receive its own advertisements.
        socket.set_multicast_loop_v6(false)?;
        socket.join_multicast_v6(&ALL_ROUTERS, index)?;
        socket.set_nonblocking(true)?;
        let ra = RouterAdvertisement {
            router_lifetime_s: 0,
            source,
            prefix: None,
            mtu: None,
        };
        Ok(Self {
            // tokio has no raw sockets. `sendto` and `recvfrom` on a raw ICMPv6 socket work as on a
            // UDP socket; the kernel fills in the checksum.
            socket: UdpSocket::from_std(socket.into())?,
            packet: ra.encode(),
            to: SocketAddr::V6(SocketAddrV6::new(ALL_NODES, 0, 0, index)),
        })
    }

    /// Advertises until stopped. A failed send is only logged: IPv4 boot works without
    /// advertisements.
    pub(crate) async fn run(self, stop: CancellationToken) -> io::Result<()> {
        let mut ticks = interval(PERIOD);
        // After a pause of the process one advertisement is enough; a burst would help nobody.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut buffer = vec![0_u8; PACKET_LEN_MAX];
        let mut last = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                _ = ticks.tick() => self.send().await,
                received = self.socket.recv_from(&mut buffer) => {
                    let (len, _) = received?;
                    if is_solicitation(&buffer[..len]) && last.elapsed() >= ANSWER_GAP {
                        last = Instant::now();
                        self.send().await;
                    }
                }
            }
        }
    }

    async fn send(&self) {
        if let Err(error) = self.socket.send_to(&self.packet, self.to).await {
            tracing::debug!(%error, "router advertisement not sent");
        }
    }
}
