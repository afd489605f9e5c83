use ipnet::IpNet;

use super::blocks::{Block, blocks};
use super::shape::Shape;
use crate::rule::prefixes::is_ipv4;
use crate::rule::{ProtocolMatch, Rule};

/// Number of entries that [`for_each_entry`] makes of a rule, for each of its names.
#[must_use]
pub fn entry_count(rule: &Rule) -> usize {
    proto_firewall::entry_count(
        &rule.sources,
        &rule.destinations,
        &rule.protocols,
        rule.names.len(),
    )
}

/// The entries of a rule: a packet matches the rule if it matches one of them.
pub(crate) fn for_each_entry(rule: &Rule, mut take: impl FnMut(Shape, Vec<u8>)) {
    let made: Vec<ProtocolBlocks> = rule.protocols.iter().map(ProtocolBlocks::of).collect();
    for source in &rule.sources {
        let family = is_ipv4(source);
        for destination in &rule.destinations {
            if is_ipv4(destination) != family {
                continue;
            }
            for protocol in made.iter().filter(|own| own.protocol.fits(family)) {
                for block in &protocol.blocks {
                    let shape = Shape {
                        is_ipv4: family,
                        source_len: source.prefix_len(),
                        destination_len: destination.prefix_len(),
                        transport: block.shape,
                    };
                    take(shape, key(source, destination, block));
                }
            }
        }
    }
}

/// A protocol match and its blocks.
struct ProtocolBlocks {
    protocol: ProtocolMatch,
    blocks: Vec<Block>,
}

impl ProtocolBlocks {
    fn of(protocol: &ProtocolMatch) -> Self {
        let protocol = *protocol;
        let blocks = blocks(protocol);
        Self { protocol, blocks }
    }
}

/// The key of a pair of prefixes and one block of a protocol match.
fn key(source: &IpNet, destination: &IpNet, block: &Block) -> Vec<u8> {
    let width = if is_ipv4(source) { 4 } else { 16 };
    let mut key = Vec::with_capacity(2 * width + block.key.len());
    for prefix in [source, destination] {
        if prefix.prefix_len() > 0 {
            match prefix.network() {
                std::net::IpAddr::V4(address) => key.extend(address.octets()),
                std::net::IpAddr::V6(address) => key.extend(address.octets()),
            }
        }
    }
    key.extend(&block.key);
    key
}
