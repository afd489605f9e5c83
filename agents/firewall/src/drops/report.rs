//! Messages of the kernel's packet log (`linux/netfilter/nfnetlink_log.h`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::record::DropRecord;
use crate::compile::PREFIX_DROPPED;
use crate::netlink::{find, parse, text};
use crate::rule::protocol_number as number;

/// Attributes of a packet.
const TIMESTAMP: u16 = 3;
const INPUT: u16 = 4;
const OUTPUT: u16 = 5;
const PAYLOAD: u16 = 9;
const PREFIX: u16 = 10;
const SEQUENCE: u16 = 12;
/// Headers of IPv6 before the transport's that are followed.
const EXTENSIONS_MAX: usize = 8;

/// A message of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// The packet, with the time that the kernel or the caller gives. Its interfaces are numbers yet.
    pub record: DropRecord,
    /// Number of the message. The kernel skips none: a gap is a loss.
    pub sequence: Option<u32>,
}

/// Headers of a packet.
#[derive(Debug)]
struct PacketHeaders<'a> {
    source: IpAddr,
    destination: IpAddr,
    length: u32,
    ttl: u8,
    protocol: u8,
    /// Header of the transport. Empty for a later fragment.
    transport: &'a [u8],
}

impl PacketReport {
    /// Reads the attributes of a message; `name` gives the name of an interface. `None` if it has no
    /// IP packet.
    pub fn decode(
        attributes: &[u8],
        now_ms: u64,
        name: impl Fn(u32) -> Option<String>,
    ) -> Option<Self> {
        let attributes = parse(attributes);
        let long = |kind| {
            Some(u32::from_be_bytes(
                find(&attributes, kind)?.try_into().ok()?,
            ))
        };
        let interface = |kind| long(kind).and_then(&name).unwrap_or_default();
        let headers = headers(find(&attributes, PAYLOAD)?)?;
        let time_ms = find(&attributes, TIMESTAMP).and_then(milliseconds);
        let prefix = find(&attributes, PREFIX).map(text).unwrap_or_default();
        let has_ports = matches!(headers.protocol, number::TCP | number::UDP | number::SCTP);
        let is_icmp = matches!(headers.protocol, number::ICMP | number::ICMP6);
        let port = |at: usize| {
            let bytes = headers.transport.get(at..at + 2).filter(|_| has_ports)?;
            Some(u16::from_be_bytes(bytes.try_into().ok()?))
        };
        let record = DropRecord {
            time_ms: time_ms.unwrap_or(now_ms),
            is_drop: prefix == PREFIX_DROPPED,
            input: interface(INPUT),
            output: interface(OUTPUT),
            source: headers.source,
            destination: headers.destination,
            length: headers.length,
            ttl: headers.ttl,
            protocol: headers.protocol,
            source_port: port(0),
            destination_port: port(2),
            icmp_type: headers.transport.first().filter(|_| is_icmp).copied(),
        };
        Some(Self {
            record,
            sequence: long(SEQUENCE),
        })
    }
}

fn milliseconds(timestamp: &[u8]) -> Option<u64> {
    let seconds = u64::from_be_bytes(*timestamp.first_chunk()?);
    let micros = u64::from_be_bytes(*timestamp.last_chunk()?);
    seconds.checked_mul(1000)?.checked_add(micros / 1000)
}

fn headers(packet: &[u8]) -> Option<PacketHeaders<'_>> {
    match packet.first()? >> 4 {
        4 => ipv4(packet),
        6 => ipv6(packet),
        _ => None,
    }
}

fn ipv4(packet: &[u8]) -> Option<PacketHeaders<'_>> {
    let header = packet.first_chunk::<20>()?;
    let len = usize::from(header[0] & 0xF) * 4;
    let is_later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1FFF != 0;
    let rest = packet.get(len..).filter(|_| len >= 20)?;
    let address = |at: usize| {
        let octets = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        IpAddr::V4(Ipv4Addr::from(octets))
    };
    Some(PacketHeaders {
        source: address(12),
        destination: address(16),
        length: u32::from(u16::from_be_bytes([header[2], header[3]])),
        ttl: header[8],
        protocol: header[9],
        transport: if is_later_fragment { &[] } else { rest },
    })
}

fn ipv6(packet: &[u8]) -> Option<PacketHeaders<'_>> {
    let (header, mut rest) = packet.split_first_chunk::<40>()?;
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    };
    let mut protocol = header[6];
    for _ in 0..EXTENSIONS_MAX {
        let (next, len) = match (protocol, rest) {
            // Hop-by-hop options, routing, destination options.
            (0 | 43 | 60, [next, len, ..]) => (*next, (usize::from(*len) + 1) * 8),
            // A fragment; only the first one has the header of the transport.
            (44, [next, _, high, low, ..]) => {
                let is_later = u16::from_be_bytes([*high, *low]) & 0xFFF8 != 0;
                (*next, if is_later { rest.len() } else { 8 })
            }
            _ => break,
        };
        protocol = next;
        rest = rest.get(len..).unwrap_or_default();
    }
    let payload = u32::from(u16::from_be_bytes([header[4], header[5]]));
    Some(PacketHeaders {
        source: address(8)?,
        destination: address(24)?,
        length: payload + 40,
        ttl: header[7],
        protocol,
        transport: rest,
    })
}

#[cfg(test)]
mod tests {
    use super::PacketReport;
    use crate::netlink::Attribute;

    fn report(packet: &[u8]) -> Option<PacketReport> {
        let mut bytes = Vec::new();
        for attribute in [
            Attribute::Value(4, 7_u32.to_be_bytes().to_vec()),
            Attribute::Value(9, packet.to_vec()),
            Attribute::Value(10, b"nftables-firewall-dropped: \0".to_vec()),
            Attribute::Value(12, 3_u32.to_be_bytes().to_vec()),
        ] {
            attribute.encode(&mut bytes);
        }
        PacketReport::decode(&bytes, 5, |index| Some(format!("vrf{index}")))
    }

    #[test]
    fn packets_of_both_families() {
        let mut v4 = vec![
            0x45, 0, 0, 40, 0, 0, 0, 0, 63, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7,
        ];
        v4.extend([0xC0, 0, 0x01, 0xBB, 0, 0]);
        let found = report(&v4).unwrap();
        assert_eq!(found.sequence, Some(3));
        let line = "0.005 dropped tcp from 10.0.0.1 port 49152 to 192.0.2.7 port 443 in vrf7 out  length 40";
        assert_eq!(found.record.line(), line);
        let mut v6 = vec![0x60, 0, 0, 0, 0, 16, 60, 64];
        v6.extend([0; 15]);
        v6.push(1);
        v6.extend([0; 15]);
        v6.push(2);
        v6.extend([58, 0, 0, 0, 0, 0, 0, 0, 128, 0]);
        let found = report(&v6).unwrap().record;
        assert_eq!(
            (found.protocol, found.icmp_type, found.length),
            (58, Some(128), 56)
        );
        assert_eq!(found.fields()["PROTO"], "ICMPv6");
        for cut in 0..v4.len() {
            let short = report(&v4[..cut]);
            assert!(short.is_none_or(|own| own.record.destination_port.is_none() || cut >= 24));
        }
        assert!(report(&[0x4F; 30]).is_none(), "the header is cut off");
    }
}
