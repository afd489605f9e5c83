//! Random rules and random packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use agents_firewall::explain::Resolved;
use agents_firewall::interpret::{FlowState, Packet};
use agents_firewall::rule::{
    Action, Controller, Direction, InputPolicy, NameSelector, ProtocolMatch, Rule, RuleId, RuleSet,
    prefixes, protocol_number as number,
};
use ipnet::IpNet;
use proptest::prelude::*;

use crate::source_networks::networks;

/// Addresses of few bits, so that rules and packets meet.
fn address() -> impl Strategy<Value = IpAddr> {
    (any::<bool>(), 0_u8..16).prop_map(|(is_ipv4, low)| {
        if is_ipv4 {
            IpAddr::V4(Ipv4Addr::new(10, 0, 0, low))
        } else {
            IpAddr::V6(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, u16::from(low)))
        }
    })
}

fn prefix() -> impl Strategy<Value = IpNet> {
    (address(), 0_u8..6).prop_map(|(address, cut)| {
        let (whole, all) = if address.is_ipv4() { (32, 0) } else { (128, 0) };
        let len = if cut == 5 { all } else { whole - cut };
        IpNet::new(address, len).unwrap().trunc()
    })
}

fn list_of_prefixes() -> impl Strategy<Value = Vec<IpNet>> {
    prop_oneof![
        Just(prefixes::any()),
        prop::collection::vec(prefix(), 1..4).prop_map(|all| prefixes::merged(&all)),
    ]
}

fn protocol() -> impl Strategy<Value = ProtocolMatch> {
    let transport = prop_oneof![Just(number::TCP), Just(number::UDP), Just(number::SCTP)];
    let ports = (transport.clone(), 0_u16..20, 0_u16..20).prop_map(|(protocol, first, more)| {
        ProtocolMatch::Ports {
            protocol,
            first,
            last: first + more,
        }
    });
    let icmp = prop_oneof![Just(number::ICMP), Just(number::ICMP6)];
    let kinds =
        (icmp, 0_u8..4).prop_map(|(protocol, kind)| ProtocolMatch::IcmpType { protocol, kind });
    prop_oneof![
        1 => Just(ProtocolMatch::Any),
        1 => transport.prop_map(ProtocolMatch::Protocol),
        1 => Just(ProtocolMatch::Protocol(number::ICMP)),
        5 => ports,
        2 => kinds,
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::Any),
        Just(Direction::Ingress),
        Just(Direction::Egress),
    ]
}

/// Names of a few, so that rules share some.
fn names() -> impl Strategy<Value = Vec<NameSelector>> {
    let all = ["a.com", "b.com", "*.com"].map(|text| NameSelector::pattern(text).unwrap());
    prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::sample::subsequence(all.to_vec(), 1..3),
    ]
}

/// Addresses that names were resolved to, by the sets of names.
pub(crate) fn resolved() -> impl Strategy<Value = Resolved> {
    let all = ["a.com", "b.com", "*.com"].map(|text| NameSelector::pattern(text).unwrap());
    let addresses = prop::collection::vec(prop::collection::btree_set(address(), 0..6), 3);
    addresses.prop_map(move |sets| {
        let mut resolved = Resolved::new();
        for (name, addresses) in all.iter().zip(sets) {
            for address in addresses {
                let set = name.set(address.is_ipv4());
                resolved.entry(set).or_default().insert(address);
            }
        }
        resolved
    })
}

/// A rule of a tenant, which may have names as its destinations.
pub(crate) fn tenant_rule() -> impl Strategy<Value = Rule> {
    (rule(Just(Action::Accept)), names()).prop_map(|(mut rule, names)| {
        if !names.is_empty() {
            rule.destinations = prefixes::any();
            rule.names = names;
        }
        rule
    })
}

fn rule(action: impl Strategy<Value = Action>) -> impl Strategy<Value = Rule> {
    let protocols = prop::collection::vec(protocol(), 1..3);
    let lists = (list_of_prefixes(), list_of_prefixes(), protocols);
    (lists, direction(), action, any::<bool>()).prop_map(|(lists, direction, action, log)| {
        let (sources, destinations, protocols) = lists;
        Rule {
            id: RuleId {
                controller: Controller::Cwnp,
                object: String::new(),
                rule: 0,
            },
            direction,
            sources,
            destinations,
            names: Vec::new(),
            protocols,
            action,
            log,
        }
    })
}

pub(crate) fn rule_set() -> impl Strategy<Value = RuleSet> {
    let action = prop_oneof![Just(Action::Accept), Just(Action::Drop), Just(Action::Log)];
    let operator = prop::collection::vec(rule(action), 0..6);
    let tenant = prop::collection::vec(tenant_rule(), 0..6);
    let managed = prop_oneof![Just("tailscale0"), Just("vrf-out")];
    let parts = (networks(), operator, tenant, managed);
    parts.prop_map(|(networks, mut operator, mut tenant, managed)| {
        for (index, rule) in operator.iter_mut().chain(&mut tenant).enumerate() {
            rule.id.object = format!("rule-{index}");
        }
        let input = InputPolicy {
            management_interfaces: vec![managed.to_owned()],
            ..InputPolicy::default()
        };
        RuleSet {
            networks,
            operator,
            tenant,
            input,
            ..RuleSet::default()
        }
    })
}

/// Interfaces of networks, of the underlay, and one of none.
pub(crate) const INTERFACES: [&str; 6] =
    ["vrf-in", "vrf-in2", "vrf-out", "vrf-shut", "lan0", "eth9"];

pub(crate) fn packet() -> impl Strategy<Value = Packet> {
    let interface = || prop::sample::select(INTERFACES.to_vec()).prop_map(str::to_owned);
    let low = (0_u8..16, 0_u8..16, any::<bool>());
    (low, 0_u8..6, 0_u16..40, interface(), interface()).prop_map(
        |((source, destination, is_ipv4), protocol, port, input, output)| {
            let address = |low: u8| -> IpAddr {
                if is_ipv4 {
                    Ipv4Addr::new(10, 0, 0, low).into()
                } else {
                    Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, u16::from(low)).into()
                }
            };
            let protocol = match protocol {
                0 | 1 => number::TCP,
                2 => number::UDP,
                3 => number::SCTP,
                4 if is_ipv4 => number::ICMP,
                4 => number::ICMP6,
                _ => 47,
            };
            let is_icmp = protocol == number::ICMP || protocol == number::ICMP6;
            Packet {
                source: address(source),
                destination: address(destination),
                protocol,
                port: if is_icmp { port % 5 } else { port },
                input,
                output,
                state: FlowState::New,
                mark: 0,
                is_reply: false,
                is_fragment: false,
            }
        },
    )
}
