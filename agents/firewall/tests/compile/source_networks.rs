//! Networks for random packets, and the plain reading of which sources belong to them.

use std::net::IpAddr;

use agents_firewall::interpret::Packet;
use agents_firewall::rule::{Network, NetworkKind, RuleSet};
use ipnet::IpNet;
use proptest::prelude::*;

fn network(id: &str, kind: NetworkKind, prefixes: &[&str]) -> Network {
    Network {
        id: id.to_owned(),
        kind,
        interfaces: vec![format!("vrf-{id}")],
        prefixes: prefixes.iter().map(|text| text.parse().unwrap()).collect(),
        addresses: None,
        nat_addresses: Vec::new(),
        masquerade: false,
    }
}

/// The addresses of an external network that machines may have, if it says so.
fn addresses() -> impl Strategy<Value = Option<Vec<IpNet>>> {
    let own = ["10.0.0.5/32", "10.0.0.12/32", "fd00::d/128"];
    let own = own.map(|text| text.parse::<IpNet>().unwrap()).to_vec();
    prop_oneof![Just(None), Just(Some(Vec::new())), Just(Some(own)),]
}

/// Two private networks, one of which has an external one inside and may not know its prefixes.
pub(crate) fn networks() -> impl Strategy<Value = Vec<Network>> {
    let strategy = (any::<bool>(), any::<bool>(), addresses());
    strategy.prop_map(|(is_known, has_default, addresses)| {
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
        outside.addresses = addresses;
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
            !(is_way_out && has_outside(rules, packet.source))
        }
        None => false,
    }
}

/// `true` if a machine behind the firewall may have the address as one of an external network.
fn has_outside(rules: &RuleSet, source: IpAddr) -> bool {
    let networks = rules.networks.iter();
    let mut outside = networks.filter(|network| network.kind == NetworkKind::External);
    outside.any(|network| {
        let mut own = network
            .addresses
            .as_ref()
            .unwrap_or(&network.prefixes)
            .iter();
        own.any(|net| net.prefix_len() > 0 && net.contains(&source))
    })
}
