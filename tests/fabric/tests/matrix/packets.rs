//! Packets of every kind, each with a mark.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, send, socket,
};

use super::hosts::{PORT, answer, inside};

/// UDP port of VXLAN.
const VXLAN: u16 = 4789;
/// Time that an answer may take, per attempt.
const SILENCE: Duration = Duration::from_millis(700);
/// The first packet may wait for ARP, or be one of a flood.
const ATTEMPTS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
    Icmp,
}

impl Protocol {
    pub(crate) const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Icmp];

    /// Sends to an address. The word of who answered; "?" where an answer has no word.
    pub(crate) fn probe(self, namespace: &str, target: &str, mark: &str) -> Option<String> {
        match self {
            Self::Tcp => answer(namespace, target, PORT),
            Self::Udp => datagram(namespace, None, target, PORT, mark.as_bytes()),
            Self::Icmp => ping(namespace, target, mark).then(|| "?".to_owned()),
        }
    }
}

/// Tells a word to everybody who sends a datagram.
pub(crate) fn answer_datagrams(namespace: &str, word: &str) {
    let socket = inside(namespace, async || UdpSocket::bind(("::", PORT)).unwrap());
    let word = word.to_owned();
    std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((_, from)) = socket.recv_from(&mut buffer) {
            // There may be no way back: the sender's address may be forged.
            socket.send_to(word.as_bytes(), from).ok();
        }
    });
}

/// Sends a datagram some times until it is answered; the answer.
pub(crate) fn datagram(
    namespace: &str,
    source: Option<&str>,
    target: &str,
    port: u16,
    payload: &[u8],
) -> Option<String> {
    let target = SocketAddr::new(target.parse::<IpAddr>().unwrap(), port);
    let any = if target.is_ipv4() { "0.0.0.0" } else { "::" };
    let source: IpAddr = source.unwrap_or(any).parse().unwrap();
    let payload = payload.to_owned();
    inside(namespace, async move || {
        let socket = UdpSocket::bind((source, 0)).unwrap();
        socket.set_read_timeout(Some(SILENCE)).unwrap();
        let mut buffer = [0; 2000];
        for _ in 0..ATTEMPTS {
            // Without a route nothing is sent, which is an answer too: nobody.
            if socket.send_to(&payload, target).is_err() {
                continue;
            }
            if let Ok((length, _)) = socket.recv_from(&mut buffer) {
                return Some(String::from_utf8_lossy(&buffer[..length]).into_owned());
            }
        }
        None
    })
}

fn ping(namespace: &str, target: &str, mark: &str) -> bool {
    let pattern: String = mark.bytes().map(|byte| format!("{byte:02x}")).collect();
    let output = Command::new("ip")
        .args([
            "netns", "exec", namespace, "ping", "-q", "-c", "3", "-i", "0.2", "-W", "1",
        ])
        .args(["-p", &pattern, target])
        .output();
    output.unwrap().status.success()
}

/// Sends a frame to everybody of a segment, in a VXLAN packet of our own making.
pub(crate) fn forge(namespace: &str, target: &str, vni: u32, mark: &str) {
    let mut packet = vec![0x08, 0, 0, 0];
    packet.extend_from_slice(&(vni << 8).to_be_bytes());
    packet.extend_from_slice(&[0xff; 6]);
    packet.extend_from_slice(&[0x02, 0, 0, 0, 0, 0x66]);
    // IEEE 802: an EtherType for experiments.
    packet.extend_from_slice(&[0x88, 0xb5]);
    packet.extend_from_slice(mark.as_bytes());
    packet.resize(packet.len() + 46, 0);
    datagram(namespace, None, target, VXLAN, &packet);
}

/// Sends a frame from a device as it is.
pub(crate) fn send_frame(namespace: &str, device: &str, frame: &[u8]) {
    let (device, frame) = (device.to_owned(), frame.to_owned());
    inside(namespace, async move || {
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        );
        let socket = socket.unwrap();
        let address: LinkAddr = nix::ifaddrs::getifaddrs()
            .unwrap()
            .filter(|entry| entry.interface_name == device)
            .find_map(|entry| entry.address.and_then(|a| a.as_link_addr().copied()))
            .unwrap();
        bind(socket.as_raw_fd(), &address).unwrap();
        send(socket.as_raw_fd(), &frame, MsgFlags::empty()).unwrap();
    });
}
