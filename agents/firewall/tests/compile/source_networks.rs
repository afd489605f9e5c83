//! Networks for random packets, and the plain reading of which sources belong to them.

use agents_firewall::interpret::Packet;
use agents_firewall::rule::{Network, NetworkKind, RuleSet};
use proptest::prelude::*;

fn network(id: &str, kind: NetworkKind, prefixes: &[&str]) -> Network {
    Network {
        id: id.to_owned(),
        kind,
        interfaces: vec![format!("vrf-{id}")],
        prefixes: prefixes.iter().map(|text| text.parse().unwrap()).collect(),
        nat_addresses: Vec::new(),
        masquerade: false,
    }
}

/// Two private networks, one of which has an external one inside and may not know its prefixes.
pub(crate) fn networks() -> impl Strategy<Value = Vec<Network>> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_known, has_default)| {
        let own: &[&str] = if is_known {
            &["10.0.0.0/29", "fd00::/125"]
        } else {
            &[]
        };
        let outside: &[&str] = if has_default {
            &["0.0.0.0/0", "::/0"]
        } else {
            &["10.0.0.12/31", "10.0.0.4/31", "fd00::c/127"]
        };
        let mut outside = network("out", NetworkKind::External, outside);
        outside.nat_addresses = vec!["10.0.0.12".parse().unwrap(), "fd00::f".parse().unwrap()];
        vec![
            network("in", NetworkKind::Private, own),
            network("in2", NetworkKind::Private, &["10.0.0.8/30", "fd00::8/126"]),
            outside,
        ]
    })
}

/// `true` if the source does not belong to the network that the packet comes from.
pub(crate) fn is_spoofed(rules: &RuleSet, packet: &Packet) -> bool {
    let by_interface = |name: &str| {
        let mut networks = rules.networks.iter();
        networks.find(|network| network.interfaces.iter().any(|own| own == name))
    };
    let is_kind = |network: Option<&Network>, kind| network.is_some_and(|own| own.kind == kind);
    let from = by_interface(&packet.input).filter(|network| network.kind == NetworkKind::Private);
    let prefixes = rules.networks.iter().flat_map(|network| {
        let named = network.prefixes.iter().filter(|net| net.prefix_len() > 0);
        named.map(move |net| (net, network))
    });
    let owner = prefixes
        .filter(|(net, _)| net.contains(&packet.source))
        .max_by_key(|(net, _)| net.prefix_len())
        .map(|(_, network)| network);
    let mut networks = rules.networks.iter();
    let is_own = networks.any(|network| network.nat_addresses.contains(&packet.source));
    let has_owner = is_kind(owner, NetworkKind::Private);
    match from {
        Some(from) if owner == Some(from) => false,
        _ if is_own || has_owner || packet.source.is_unspecified() => true,
        Some(from) if from.prefixes.is_empty() => false,
        Some(_) => {
            let to = by_interface(&packet.output);
            let is_way_out = is_kind(to, NetworkKind::External);
            !(is_way_out && is_kind(owner, NetworkKind::External))
        }
        None => false,
    }
}
