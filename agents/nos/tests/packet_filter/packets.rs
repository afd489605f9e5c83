//! Ethernet frames with IP packets, byte by byte.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::frames::{PROBE, checksum};

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// A frame with an IPv4 packet.
pub(crate) fn ipv4(
    link: [[u8; 6]; 2],
    from: Ipv4Addr,
    to: Ipv4Addr,
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let [target, source] = link;
    let packet = packet_v4(from, to, protocol, payload);
    [&target[..], &source, &IPV4, &packet].concat()
}

pub(crate) fn packet_v4(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let head = [
        0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0,
    ];
    let mut head = [&head[..], &from.octets(), &to.octets()].concat();
    let sum = checksum(&head);
    head[10..12].copy_from_slice(&sum.to_be_bytes());
    [&head[..], payload].concat()
}

/// A frame with an IPv6 packet. The checksum at `sum` in the payload, if there is one, is set.
pub(crate) fn ipv6(
    link: [[u8; 6]; 2],
    from: Ipv6Addr,
    to: Ipv6Addr,
    next: u8,
    payload: &[u8],
    sum: Option<usize>,
) -> Vec<u8> {
    let [target, source] = link;
    let mut payload = payload.to_vec();
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let ends = [from.octets(), to.octets()].concat();
    if let Some(at) = sum {
        let pseudo = [&ends[..], &[0, 0], &length, &[0, 0, 0, next], &payload].concat();
        payload[at..at + 2].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    }
    let head = [0x60, 0, 0, 0, length[0], length[1], next, 255];
    [&target[..], &source, &IPV6, &head, &ends, &payload].concat()
}

/// A payload that [`super::tap::Tap::heard`] finds.
pub(crate) fn probe(mark: u32) -> Vec<u8> {
    [&PROBE[..], &mark.to_be_bytes(), &[0; 10]].concat()
}

/// A UDP datagram without a checksum.
pub(crate) fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).unwrap();
    let head = [5555, port, length, 0].map(u16::to_be_bytes).concat();
    [&head[..], payload].concat()
}

/// An ICMP message, of IPv4.
pub(crate) fn icmp(kind: u8, code: u8, word: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut out = [&[kind, code, 0, 0][..], &word, payload].concat();
    let sum = checksum(&out);
    out[2..4].copy_from_slice(&sum.to_be_bytes());
    out
}

/// The flags of a connection's first packet, and of any other.
pub(crate) const SYN: u8 = 0x02;
pub(crate) const ACK: u8 = 0x10;

/// A TCP segment without a checksum.
pub(crate) fn tcp(ports: [u16; 2], flags: u8, payload: &[u8]) -> Vec<u8> {
    let ports = ports.map(u16::to_be_bytes).concat();
    let rest = [0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 4, 0, 0, 0, 0, 0];
    [&ports[..], &rest, payload].concat()
}

/// A TCP segment over IPv4 with its checksum.
pub(crate) fn tcp_v4(from: Ipv4Addr, to: Ipv4Addr, ports: [u16; 2], flags: u8) -> Vec<u8> {
    let mut out = tcp(ports, flags, &[]);
    let length = u16::try_from(out.len()).unwrap().to_be_bytes();
    let ends = [from.octets(), to.octets()].concat();
    let sum = checksum(&[&ends[..], &[0, 6], &length, &out].concat());
    out[16..18].copy_from_slice(&sum.to_be_bytes());
    out
}
