//! Packets byte by byte, with any source.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use crate::namespace::Namespace;

const UDP: u8 = 17;
const ICMP6: u8 = 58;
const FRAGMENT: u8 = 44;

/// A part of a datagram.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Number that the parts of one datagram share.
    pub(crate) id: u16,
    /// Offset in the datagram, bytes; a multiple of 8.
    pub(crate) offset: u16,
    /// `true` unless it is the last one.
    pub(crate) has_more: bool,
}

/// Sends whole packets, headers included.
pub(crate) struct PacketSender(UdpSocket, UdpSocket);

impl PacketSender {
    pub(crate) fn new(at: &Namespace) -> Self {
        let open = |family| {
            let kind = SockType::Raw;
            let made =
                at.inside(|| socket(family, kind, SockFlag::empty(), SockProtocol::Raw).unwrap());
            UdpSocket::from(made)
        };
        Self(open(AddressFamily::Inet), open(AddressFamily::Inet6))
    }

    pub(crate) fn send(&self, packet: &[u8], to: IpAddr) {
        let socket = if to.is_ipv4() { &self.0 } else { &self.1 };
        let sent = socket.send_to(packet, SocketAddr::new(to, 0));
        assert_eq!(sent.unwrap(), packet.len());
    }

    /// Sends a part of a UDP datagram.
    pub(crate) fn send_part(&self, from: IpAddr, to: IpAddr, bytes: &[u8], part: Part) {
        self.send(&packet(from, to, UDP, bytes, Some(part)), to);
    }
}

/// A UDP datagram without the header of IP.
pub(crate) fn datagram(from: SocketAddr, to: SocketAddr, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + data.len()).unwrap();
    let mut all = Vec::new();
    for word in [from.port(), to.port(), length, 0] {
        all.extend(word.to_be_bytes());
    }
    all.extend(data);
    let pseudo = [
        octets(from.ip()),
        octets(to.ip()),
        u32::from(length).to_be_bytes().to_vec(),
        u32::from(UDP).to_be_bytes().to_vec(),
        all.clone(),
    ];
    all[6..8].copy_from_slice(&checksum(&pseudo.concat()).to_be_bytes());
    all
}

/// A packet of IPv4 or IPv6.
pub(crate) fn packet(
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    bytes: &[u8],
    part: Option<Part>,
) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let (id, place, has_more) =
        part.map_or((1, 0, false), |part| (part.id, part.offset, part.has_more));
    let mut all = if from.is_ipv4() {
        let flags = (u16::from(has_more) << 13) | (place / 8);
        let mut header = vec![0x45, 0];
        for word in [20 + length, id, flags] {
            header.extend(word.to_be_bytes());
        }
        header.extend([64, protocol, 0, 0]);
        header
    } else {
        let next = if part.is_some() { FRAGMENT } else { protocol };
        let more = if part.is_some() { 8 } else { 0 };
        let mut header = vec![0x60, 0, 0, 0];
        header.extend((length + more).to_be_bytes());
        header.extend([next, 64]);
        header
    };
    all.extend(octets(from));
    all.extend(octets(to));
    if from.is_ipv4() {
        let sum = checksum(&all);
        all[10..12].copy_from_slice(&sum.to_be_bytes());
    } else if part.is_some() {
        all.extend([protocol, 0]);
        all.extend((place | u16::from(has_more)).to_be_bytes());
        all.extend(u32::from(id).to_be_bytes());
    }
    all.extend(bytes);
    all
}

/// An ICMP message about the first bytes of a packet.
pub(crate) fn icmp(kind: u8, code: u8, rest: [u8; 4], about: &[u8]) -> Vec<u8> {
    let mut all = vec![kind, code, 0, 0];
    all.extend(rest);
    all.extend(about);
    let sum = checksum(&all);
    all[2..4].copy_from_slice(&sum.to_be_bytes());
    all
}

/// A message of ICMPv6, with four bytes that are 0 after its header.
pub(crate) fn icmp6(from: IpAddr, to: IpAddr, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut all = vec![kind, 0, 0, 0, 0, 0, 0, 0];
    all.extend(body);
    let length = u32::try_from(all.len()).unwrap();
    let pseudo = [
        octets(from),
        octets(to),
        length.to_be_bytes().to_vec(),
        u32::from(ICMP6).to_be_bytes().to_vec(),
        all.clone(),
    ];
    all[2..4].copy_from_slice(&checksum(&pseudo.concat()).to_be_bytes());
    all
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let words = words.map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}
