//! A minimal DHCP client (RFC 2131): discover, offer, request, acknowledge, and renewal.
//!
//! It uses a plain UDP socket bound to one interface and requests broadcast answers, because Linux
//! delivers unicast only to addresses that the interface has already.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base_runtime::Backoff;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{BindToDevice, ReuseAddr};
use proto_types::MacAddr;
use proto_wire_dhcp::{BOOTP_REQUEST, Kind, Message, Options, code};
use tokio::net::UdpSocket;

/// UDP port of DHCP servers.
const SERVER_PORT: u16 = 67;
/// UDP port of DHCP clients.
const CLIENT_PORT: u16 = 68;
/// Bytes of a received packet at most; the rest of a longer one is cut.
const PACKET_MAX: usize = 1500;
/// Flag that asks the server for broadcast answers.
const FLAG_BROADCAST: u16 = 0x8000;
/// Wait for an answer: doubles from the first to the last. RFC 2131 §4.1 asks for 4 s to 64 s; the
/// boot network is local, and the firmware got its lease from the same server a moment ago.
const ANSWER: Backoff = Backoff::new(Duration::from_secs(1), ANSWER_LAST);
/// Longest wait for an answer.
const ANSWER_LAST: Duration = Duration::from_secs(16);
/// Discover messages until the interface counts as without a server.
const TRIES_MAX: u32 = 8;
/// Lease time when the server names none, seconds.
const LEASE_DEFAULT_S: u32 = 3600;
/// Shortest lease time, seconds; shorter ones are raised to it, or renewals would never pause.
const LEASE_MIN_S: u32 = 60;
/// Vendor class (option 60), by which an operator recognises hammer in the server's log.
const VENDOR_CLASS: &str = "metalmesh-hammer";

/// An address, and the options that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The machine's address.
    pub address: Ipv4Addr,
    /// Length of the prefix, bits.
    pub prefix: u8,
    /// Default gateway.
    pub router: Option<Ipv4Addr>,
    /// DNS servers.
    pub dns: Vec<Ipv4Addr>,
    /// NTP servers.
    pub ntp: Vec<Ipv4Addr>,
    /// The server that gave the lease, which is asked for its renewal.
    pub server: Ipv4Addr,
    /// Lease time, seconds.
    pub lease_s: u32,
}

/// Acquires a lease on `interface`.
///
/// # Errors
/// When no server answers, or the socket cannot be opened.
pub async fn acquire(interface: &str, mac: MacAddr) -> Result<Lease> {
    let socket = open(interface)?;
    // One transaction id for all attempts: a late offer to an earlier one is as good.
    let xid = rand::random();
    for attempt in 0..TRIES_MAX {
        let wait = ANSWER.step(attempt);
        send(
            &socket,
            &request(mac, xid, Kind::Discover, None),
            Ipv4Addr::BROADCAST,
        )
        .await?;
        if let Some(offer) = receive(&socket, xid, mac, wait, Kind::Offer).await? {
            send(
                &socket,
                &request(mac, xid, Kind::Request, Some(&offer)),
                Ipv4Addr::BROADCAST,
            )
            .await?;
            if let Some(ack) = receive(&socket, xid, mac, wait, Kind::Ack).await? {
                return lease(&ack);
            }
        }
    }
    bail!("no DHCP server answers on {interface}")
}

/// Renews a lease at the server that gave it.
///
/// # Errors
/// When the server does not answer or refuses.
pub async fn renew(interface: &str, mac: MacAddr, old: &Lease) -> Result<Lease> {
    let socket = open(interface)?;
    let xid = rand::random();
    let mut message = request(mac, xid, Kind::Request, None);
    // RFC 2131 §4.3.2, RENEWING: the address goes into ciaddr, the options that name address and
    // server stay out, and the answer may be unicast since the interface has the address.
    message.ciaddr = old.address;
    message.flags = 0;
    send(&socket, &message, old.server).await?;
    match receive(&socket, xid, mac, ANSWER_LAST, Kind::Ack).await? {
        Some(ack) => lease(&ack),
        None => bail!("DHCP server {} does not renew", old.server),
    }
}

fn open(interface: &str) -> Result<UdpSocket> {
    // Not tokio's `UdpSocket::bind`: it would bind the port before the options can be set.
    let socket = socket2_udp()?;
    setsockopt(&socket, BindToDevice, &interface.into())?;
    setsockopt(&socket, ReuseAddr, &true)?;
    socket.set_broadcast(true)?;
    socket.set_nonblocking(true)?;
    bind(&socket)?;
    Ok(UdpSocket::from_std(socket)?)
}

/// An unbound socket. The device must be set before the port is bound, or the sockets of two
/// interfaces would conflict.
fn socket2_udp() -> Result<std::net::UdpSocket> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let fd = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    Ok(std::net::UdpSocket::from(fd))
}

fn bind(socket: &std::net::UdpSocket) -> Result<()> {
    use std::os::fd::AsRawFd;
    let address = nix::sys::socket::SockaddrIn::new(0, 0, 0, 0, CLIENT_PORT);
    nix::sys::socket::bind(socket.as_raw_fd(), &address).context("DHCP port 68")
}

async fn send(socket: &UdpSocket, message: &Message, to: Ipv4Addr) -> Result<()> {
    socket
        .send_to(&message.encode(), (to, SERVER_PORT))
        .await
        .context("cannot send DHCP")?;
    Ok(())
}

/// The first answer of this kind to this request within `limit`. `None` after a NAK or `limit`.
async fn receive(
    socket: &UdpSocket,
    xid: u32,
    mac: MacAddr,
    limit: Duration,
    kind: Kind,
) -> Result<Option<Message>> {
    let wait = async {
        let mut buffer = [0; PACKET_MAX];
        loop {
            let (read, _) = socket.recv_from(&mut buffer).await?;
            let Ok(message) = Message::decode(buffer.get(..read).unwrap_or_default()) else {
                continue;
            };
            // Answers are broadcast, so that those to every other machine arrive here as well.
            if message.xid != xid || message.chaddr != mac || message.op == BOOTP_REQUEST {
                continue;
            }
            if message.kind == kind {
                return Ok::<_, std::io::Error>(Some(message));
            }
            // The server sends no ACK after it; the caller starts again with a discover message
            // (RFC 2131 §3.1, step 5).
            if message.kind == Kind::Nak {
                return Ok(None);
            }
        }
    };
    match tokio::time::timeout(limit, wait).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Ok(None),
    }
}

fn request(mac: MacAddr, xid: u32, kind: Kind, offer: Option<&Message>) -> Message {
    let mut options = Options::default();
    options.set(code::VENDOR_CLASS, VENDOR_CLASS.as_bytes());
    options.set(
        code::PARAMETER_LIST,
        [
            code::SUBNET_MASK,
            code::ROUTER,
            code::DNS,
            code::NTP,
            code::LEASE_TIME,
        ]
        .to_vec(),
    );
    // RFC 2131 §4.3.2, SELECTING. The server's id tells the other servers that their offers are
    // declined.
    if let Some(offer) = offer {
        options.set_addresses(code::REQUESTED_ADDRESS, &[offer.yiaddr]);
        if let Some(server) = offer.options.address(code::SERVER_ID) {
            options.set_addresses(code::SERVER_ID, &[server]);
        }
    }
    Message {
        op: BOOTP_REQUEST,
        kind,
        hops: 0,
        xid,
        secs: 0,
        flags: FLAG_BROADCAST,
        ciaddr: Ipv4Addr::UNSPECIFIED,
        yiaddr: Ipv4Addr::UNSPECIFIED,
        siaddr: Ipv4Addr::UNSPECIFIED,
        giaddr: Ipv4Addr::UNSPECIFIED,
        chaddr: mac,
        sname: String::new(),
        file: String::new(),
        options,
    }
}

fn lease(ack: &Message) -> Result<Lease> {
    if ack.yiaddr.is_unspecified() {
        bail!("the DHCP server gave no address");
    }
    let mask = ack
        .options
        .address(code::SUBNET_MASK)
        .unwrap_or(Ipv4Addr::new(255, 255, 255, 0));
    let lease_s = ack
        .options
        .long(code::LEASE_TIME)
        .unwrap_or(LEASE_DEFAULT_S);
    Ok(Lease {
        address: ack.yiaddr,
        prefix: u8::try_from(mask.to_bits().leading_ones())?,
        router: addresses(ack, code::ROUTER).first().copied(),
        dns: addresses(ack, code::DNS),
        ntp: addresses(ack, code::NTP),
        server: ack.options.address(code::SERVER_ID).unwrap_or(ack.siaddr),
        lease_s: lease_s.max(LEASE_MIN_S),
    })
}

fn addresses(message: &Message, option: u8) -> Vec<Ipv4Addr> {
    let bytes = message.options.get(option).unwrap_or_default();
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| Ipv4Addr::from(*b))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn ack() -> Message {
        let mut reply = Message::reply_to(&request(MAC, 9, Kind::Request, None), Kind::Ack);
        reply.yiaddr = Ipv4Addr::new(10, 77, 1, 20);
        reply
            .options
            .set_addresses(code::SUBNET_MASK, &[Ipv4Addr::new(255, 255, 254, 0)]);
        reply
            .options
            .set_addresses(code::ROUTER, &[Ipv4Addr::new(10, 77, 1, 2)]);
        reply.options.set_addresses(
            code::DNS,
            &[Ipv4Addr::new(1, 1, 1, 1), Ipv4Addr::new(9, 9, 9, 9)],
        );
        reply
            .options
            .set_addresses(code::SERVER_ID, &[Ipv4Addr::new(10, 77, 1, 2)]);
        reply.options.set(code::LEASE_TIME, 10_u32.to_be_bytes());
        reply
    }

    #[test]
    fn an_ack_is_a_lease() {
        let lease = lease(&Message::decode(&ack().encode()).unwrap()).unwrap();
        assert_eq!(
            (lease.address, lease.prefix),
            (Ipv4Addr::new(10, 77, 1, 20), 23)
        );
        assert_eq!(lease.dns.len(), 2);
        assert_eq!(lease.lease_s, LEASE_MIN_S);
    }

    #[test]
    fn no_address_is_no_lease() {
        let mut nothing = ack();
        nothing.yiaddr = Ipv4Addr::UNSPECIFIED;
        assert!(lease(&nothing).is_err());
    }

    #[test]
    fn a_request_names_the_offer() {
        let message = request(MAC, 9, Kind::Request, Some(&ack()));
        assert!(message.wants_broadcast());
        let asked = message.options.address(code::REQUESTED_ADDRESS);
        assert_eq!(asked, Some(Ipv4Addr::new(10, 77, 1, 20)));
    }
}
