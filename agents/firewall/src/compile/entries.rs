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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{entry_count, for_each_entry};
    use crate::rule::{Action, Controller, Direction, ProtocolMatch, Rule, RuleId};

    fn prefixes() -> impl Strategy<Value = Vec<ipnet::IpNet>> {
        let texts = [
            "10.0.0.0/8",
            "203.0.113.7/32",
            "0.0.0.0/0",
            "fd00::/8",
            "::/0",
        ];
        let nets = texts.map(|text| text.parse().unwrap());
        let net = proptest::sample::select(nets.to_vec());
        proptest::collection::vec(net, 0..6)
    }

    fn protocol() -> impl Strategy<Value = ProtocolMatch> {
        let ports = (any::<u16>(), any::<u16>()).prop_map(|(one, other)| ProtocolMatch::Ports {
            protocol: 6,
            first: one.min(other),
            last: one.max(other),
        });
        let number = proptest::sample::select(&[1_u8, 6, 17, 58][..]);
        prop_oneof![
            Just(ProtocolMatch::Any),
            number.prop_map(ProtocolMatch::Protocol),
            Just(ProtocolMatch::IcmpType {
                protocol: 58,
                kind: 128
            }),
            ports,
        ]
    }

    proptest! {
        #[test]
        fn entries_are_counted_as_they_are_made(
            sources in prefixes(),
            destinations in prefixes(),
            protocols in proptest::collection::vec(protocol(), 0..4),
        ) {
            let rule = Rule {
                id: RuleId {
                    controller: Controller::Cwnp,
                    object: "egress/x".to_owned(),
                    rule: 0,
                },
                direction: Direction::Egress,
                sources,
                destinations,
                names: Vec::new(),
                protocols,
                action: Action::Accept,
                log: false,
            };
            let mut made = 0;
            for_each_entry(&rule, |_, _| made += 1);
            prop_assert_eq!(entry_count(&rule), made);
        }
    }
}
