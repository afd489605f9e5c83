//! A DHCP client (RFC 2131), as small as an installer needs: four messages, a lease, renewal.
//!
//! It uses plain UDP on one interface and asks for broadcast answers, which Linux delivers to a
//! socket of an interface without an address.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base_runtime::Backoff;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{BindToDevice, ReuseAddr};
use proto_types::MacAddr;
use proto_wire_dhcp::{BOOTP_REQUEST, Kind, Message, Options, code};
use tokio::net::UdpSocket;

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
const PACKET_MAX: usize = 1500;
const FLAG_BROADCAST: u16 = 0x8000;
/// First wait for an answer; doubles up to the last (RFC 2131 §4.1 asks for 4 s to 64 s; a
/// machine in front of its boot server need not wait so long).
const ANSWER: Backoff = Backoff::new(Duration::from_secs(1), ANSWER_LAST);
const ANSWER_LAST: Duration = Duration::from_secs(16);
const TRIES_MAX: u32 = 8;
const LEASE_DEFAULT_S: u32 = 3600;
/// A server that says less would be asked all the time.
const LEASE_MIN_S: u32 = 60;
const VENDOR_CLASS: &str = "metalmesh-hammer";

/// An address and what came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub address: Ipv4Addr,
    pub prefix: u8,
    pub router: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    pub ntp: Vec<Ipv4Addr>,
    pub server: Ipv4Addr,
    pub lease_s: u32,
}

/// Gets a lease on `interface`.
///
/// # Errors
/// When no server answers, or the socket cannot be opened.
pub async fn acquire(interface: &str, mac: MacAddr) -> Result<Lease> {
    let socket = open(interface)?;
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

/// Asks the lease's own server to prolong it.
///
/// # Errors
/// When the server does not answer or refuses.
pub async fn renew(interface: &str, mac: MacAddr, old: &Lease) -> Result<Lease> {
    let socket = open(interface)?;
    let xid = rand::random();
    let mut message = request(mac, xid, Kind::Request, None);
    message.ciaddr = old.address;
    message.flags = 0;
    send(&socket, &message, old.server).await?;
    match receive(&socket, xid, mac, ANSWER_LAST, Kind::Ack).await? {
        Some(ack) => lease(&ack),
        None => bail!("DHCP server {} does not renew", old.server),
    }
}

fn open(interface: &str) -> Result<UdpSocket> {
    let socket = socket2_udp()?;
    setsockopt(&socket, BindToDevice, &interface.into())?;
    setsockopt(&socket, ReuseAddr, &true)?;
    socket.set_broadcast(true)?;
    socket.set_nonblocking(true)?;
    bind(&socket)?;
    Ok(UdpSocket::from_std(socket)?)
}

/// A socket that is not bound yet: the device must be set before the port is taken, or two
/// interfaces could not ask at once.
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

/// The first fitting answer within `limit`; a NAK ends the wait.
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
            if message.xid != xid || message.chaddr != mac || message.op == BOOTP_REQUEST {
                continue;
            }
            if message.kind == kind {
                return Ok::<_, std::io::Error>(Some(message));
            }
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
        bail!("DHCP gave no address");
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
