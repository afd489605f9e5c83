use super::shape::TransportShape;
use crate::rule::ProtocolMatch;

/// A part of a protocol match that is one value under one mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) shape: TransportShape,
    /// The padded fields.
    pub(super) key: Vec<u8>,
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

    #[test]
    fn blocks_are_counted_as_they_are_made() {
        for (first, last) in [
            (0, 0),
            (0, 65_535),
            (1, 65_535),
            (0, 65_534),
            (1, 65_534),
            (443, 448),
        ] {
            let ports = ProtocolMatch::Ports {
                protocol: 6,
                first,
                last,
            };
            assert_eq!(ports.blocks(), blocks(ports).len(), "{first}-{last}");
        }
    }
}
