//! Shapes: which bits of a packet a key holds.

use ipnet::IpNet;

use crate::rule::ProtocolMatch;

/// Bits of the transport protocol in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportShape {
    /// None.
    Any,
    /// The protocol.
    Protocol,
    /// The protocol, and as many leading bits of the destination port.
    Port(u8),
    /// The protocol, and the type of ICMP.
    IcmpType,
}

/// Bits of a packet in a key. Keys of one shape are in one map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// `true` for IPv4.
    pub is_ipv4: bool,
    /// Leading bits of the source address.
    pub source_len: u8,
    /// Leading bits of the destination address.
    pub destination_len: u8,
    /// Bits of the transport protocol.
    pub transport: TransportShape,
}

/// A shape and a key of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Shape.
    pub shape: Shape,
    /// Key: the fields of the shape, each padded to 4 bytes.
    pub key: Vec<u8>,
}

impl Shape {
    /// Name in the names of maps: `4s0d32p16`.
    #[must_use]
    pub fn name(&self) -> String {
        let family = if self.is_ipv4 { '4' } else { '6' };
        let transport = match self.transport {
            TransportShape::Any => String::new(),
            TransportShape::Protocol => "t".to_owned(),
            TransportShape::Port(bits) => format!("p{bits}"),
            TransportShape::IcmpType => "i".to_owned(),
        };
        format!(
            "{family}s{}d{}{transport}",
            self.source_len, self.destination_len
        )
    }

    /// `true` if the key is empty: every packet of the family matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.source_len == 0 && self.destination_len == 0 && self.transport == TransportShape::Any
    }
}

/// The entry of a pair of prefixes and one block of a protocol match.
pub(super) fn entry(source: &IpNet, destination: &IpNet, block: &Block) -> Entry {
    let shape = Shape {
        is_ipv4: matches!(source, IpNet::V4(_)),
        source_len: source.prefix_len(),
        destination_len: destination.prefix_len(),
        transport: block.shape,
    };
    let mut key = Vec::new();
    for prefix in [source, destination] {
        if prefix.prefix_len() > 0 {
            match prefix.network() {
                std::net::IpAddr::V4(address) => key.extend(address.octets()),
                std::net::IpAddr::V6(address) => key.extend(address.octets()),
            }
        }
    }
    key.extend(&block.key);
    Entry { shape, key }
}

/// A part of a protocol match that is one value under one mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    shape: TransportShape,
    /// The padded fields.
    key: Vec<u8>,
}

/// Splits a protocol match into blocks.
pub(super) fn blocks(protocol: ProtocolMatch) -> Vec<Block> {
    let one = |shape, key: &[u8]| {
        vec![Block {
            shape,
            key: key.to_vec(),
        }]
    };
    match protocol {
        ProtocolMatch::Any => one(TransportShape::Any, &[]),
        ProtocolMatch::Protocol(number) => one(TransportShape::Protocol, &[number, 0, 0, 0]),
        ProtocolMatch::IcmpType { protocol, kind } => one(
            TransportShape::IcmpType,
            &[protocol, 0, 0, 0, kind, 0, 0, 0],
        ),
        ProtocolMatch::Ports {
            protocol,
            first,
            last,
        } => port_blocks(protocol, first, last),
    }
}

/// The largest aligned blocks of ports that make up a range.
fn port_blocks(protocol: u8, first: u16, last: u16) -> Vec<Block> {
    let mut found = Vec::new();
    let (mut next, last) = (u32::from(first), u32::from(last));
    while next <= last {
        let mut free_bits = next.trailing_zeros().min(16);
        while next + (1 << free_bits) - 1 > last {
            free_bits -= 1;
        }
        let [_, _, high, low] = next.to_be_bytes();
        let bits = u8::try_from(16 - free_bits).unwrap_or(16);
        found.push(if bits == 0 {
            Block {
                shape: TransportShape::Protocol,
                key: vec![protocol, 0, 0, 0],
            }
        } else {
            Block {
                shape: TransportShape::Port(bits),
                key: vec![protocol, 0, 0, 0, high, low, 0, 0],
            }
        });
        next += 1 << free_bits;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{TransportShape, blocks};
    use crate::rule::ProtocolMatch;

    #[test]
    fn port_ranges_are_split_into_aligned_blocks() {
        for (first, last, expected) in [
            (80, 80, vec![(16, 80)]),
            (80, 83, vec![(14, 80)]),
            (443, 448, vec![(16, 443), (14, 444), (16, 448)]),
            (0, 65_535, vec![(0, 0)]),
            (65_534, 65_535, vec![(15, 65_534)]),
            (1, 3, vec![(16, 1), (15, 2)]),
        ] {
            let found: Vec<_> = blocks(ProtocolMatch::Ports {
                protocol: 6,
                first,
                last,
            })
            .iter()
            .map(|block| match block.shape {
                TransportShape::Port(bits) => {
                    (bits, u16::from_be_bytes([block.key[4], block.key[5]]))
                }
                _ => (0, 0),
            })
            .collect();
            assert_eq!(found, expected, "{first}-{last}");
        }
    }
}
