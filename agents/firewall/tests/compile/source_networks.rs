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

/// Two private networks, one of which has an external one inside and may not know its prefixes, and one
/// whose object is wrong.
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
            network(
                "shut",
                NetworkKind::Closed,
                &["10.0.0.14/31", "fd00::e/127"],
            ),
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
    let mut ends = [&packet.input, &packet.output].into_iter();
    if ends.any(|name| is_kind(by_interface(name), NetworkKind::Closed)) {
        return true;
    }
    let from = by_interface(&packet.input).filter(|network| network.kind == NetworkKind::Private);
    match from {
        Some(from) if owner(rules, packet.source) == Some(from) => false,
        _ if is_taken(rules, packet.source) || packet.source.is_unspecified() => true,
        Some(from) if from.prefixes.is_empty() => false,
        Some(_) => {
            let to = by_interface(&packet.output);
            let is_way_out = is_kind(to, NetworkKind::External);
            !(is_way_out && has_outside(rules, packet.source))
        }
        None => false,
    }
}

/// The network with the longest prefix for an address.
fn owner(rules: &RuleSet, address: IpAddr) -> Option<&Network> {
    let prefixes = rules.networks.iter().flat_map(|network| {
        let named = network.prefixes.iter().filter(|net| net.prefix_len() > 0);
        named.map(move |net| (net, network))
    });
    prefixes
        .filter(|(net, _)| net.contains(&address))
        .max_by_key(|(net, _)| net.prefix_len())
        .map(|(_, network)| network)
}

/// `true` if the address is one of the firewall, or of a network that nobody else is in.
fn is_taken(rules: &RuleSet, address: IpAddr) -> bool {
    let mut networks = rules.networks.iter();
    let is_own = networks.any(|network| network.nat_addresses.contains(&address));
    let of_one = [NetworkKind::Private, NetworkKind::Closed];
    is_own || owner(rules, address).is_some_and(|network| of_one.contains(&network.kind))
}

/// `true` if the address leads to the firewall, or to a machine behind it.
pub(crate) fn is_inside(rules: &RuleSet, address: IpAddr) -> bool {
    is_taken(rules, address) || has_outside(rules, address)
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
