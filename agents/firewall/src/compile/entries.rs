use ipnet::IpNet;

use super::blocks::{Block, blocks};
use super::shape::{Entry, Shape};
use crate::rule::prefixes::is_ipv4;
use crate::rule::{ProtocolMatch, Rule};

/// Entries that one rule may have: sources × destinations × blocks of ports. More would let one
/// tenant fill the firewall's memory; a rule beyond it is refused.
pub const ENTRIES_MAX: usize = 16_384;

/// Number of entries that [`entries`] makes of a rule.
#[must_use]
pub fn entry_count(rule: &Rule) -> usize {
    [true, false]
        .into_iter()
        .map(|family| {
            let of =
                |prefixes: &[IpNet]| prefixes.iter().filter(|net| is_ipv4(net) == family).count();
            let protocols = rule.protocols.iter().filter(|match_| match_.fits(family));
            let blocks: usize = protocols.map(|match_| blocks(*match_).len()).sum();
            of(&rule.sources)
                .saturating_mul(of(&rule.destinations))
                .saturating_mul(blocks)
        })
        .sum::<usize>()
        .saturating_mul(rule.names.len().max(1))
}

/// The entries of a rule: a packet matches the rule if it matches one of them.
pub(super) fn entries(rule: &Rule) -> Vec<Entry> {
    let mut found = Vec::new();
    for source in &rule.sources {
        let fits = |protocol: &&ProtocolMatch| protocol.fits(is_ipv4(source));
        for destination in &rule.destinations {
            if is_ipv4(source) != is_ipv4(destination) {
                continue;
            }
            for protocol in rule.protocols.iter().filter(fits) {
                let made = blocks(*protocol);
                found.extend(made.iter().map(|block| entry(source, destination, block)));
            }
        }
    }
    found
}

/// The entry of a pair of prefixes and one block of a protocol match.
fn entry(source: &IpNet, destination: &IpNet, block: &Block) -> Entry {
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
