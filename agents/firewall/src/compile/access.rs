//! Rules about access to the firewall itself, as the compiler's own typed rules.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::rule::prefixes::any;
use crate::rule::{
    Action, Controller, Direction, NetworkKind, ProtocolMatch, Rule, RuleId, RuleSet,
    protocol_number as number,
};

/// ND and MLD: router solicitation and advertisement, neighbour solicitation and advertisement,
/// and the query of a switch that filters multicast.
const ROUTER_TYPES: [u8; 2] = [133, 134];
const NEIGHBOUR_TYPES: [u8; 3] = [130, 135, 136];
const BGP: u16 = 179;
const VXLAN: u16 = 4789;
const DHCP_CLIENT: u16 = 68;
const DHCP6_CLIENT: u16 = 546;

/// Interfaces of the underlay if no network is declared as such: the names that images give them.
const UNDERLAY_INTERFACES: [&str; 2] = ["lan0", "lan1"];

/// Rules for packets from the same interfaces.
#[derive(Clone, Debug)]
pub(crate) struct AccessGroup {
    /// Name in chains and maps.
    pub(crate) name: &'static str,
    pub(crate) rules: Vec<Rule>,
}

/// The interfaces of the firewall by who is behind them.
#[derive(Clone, Debug)]
pub(crate) struct InputInterfaces {
    pub(crate) underlay: Vec<String>,
    pub(crate) private: Vec<String>,
    pub(crate) management: Vec<String>,
}

impl InputInterfaces {
    pub(crate) fn of(rules: &RuleSet) -> Self {
        let own = |kind| {
            let networks = rules.networks.iter();
            let of_kind = networks.filter(move |network| network.kind == kind);
            of_kind.flat_map(|network| network.interfaces.iter().cloned())
        };
        let mut underlay: Vec<String> = own(NetworkKind::Underlay).collect();
        if underlay.is_empty() {
            underlay = UNDERLAY_INTERFACES.map(str::to_owned).to_vec();
        }
        Self {
            underlay,
            private: own(NetworkKind::Private).collect(),
            management: rules.input.management_interfaces.clone(),
        }
    }
}

/// Access that every network needs.
pub(crate) fn needed() -> AccessGroup {
    AccessGroup {
        name: "needed",
        rules: vec![access("neighbour", any(), icmp6(&NEIGHBOUR_TYPES))],
    }
}

/// Access that the fabric needs.
pub(crate) fn underlay(rules: &RuleSet) -> AccessGroup {
    let networks = rules.networks.iter();
    let underlays = networks.filter(|network| network.kind == NetworkKind::Underlay);
    let mut tunnels: Vec<IpNet> = underlays
        .flat_map(|network| network.prefixes.clone())
        .collect();
    if tunnels.is_empty() {
        tunnels = published_underlay();
    }
    AccessGroup {
        name: "underlay",
        rules: vec![
            access("router", link_local(), icmp6(&ROUTER_TYPES)),
            access("bgp", link_local(), vec![port(number::TCP, BGP)]),
            access("vxlan", tunnels, vec![port(number::UDP, VXLAN)]),
            access("dhcp", any(), dhcp()),
        ],
    }
}

/// Access of the networks of management.
pub(crate) fn management(rules: &RuleSet) -> AccessGroup {
    AccessGroup {
        name: "management",
        rules: vec![
            access("management", any(), management_ports(rules)),
            access("management-dhcp", any(), dhcp()),
        ],
    }
}

/// Access of senders with an address of management, by other interfaces.
pub(crate) fn managers(rules: &RuleSet) -> AccessGroup {
    let prefixes = rules.input.management_prefixes.clone();
    let mut found = Vec::new();
    if !prefixes.is_empty() {
        found.push(access("managers", prefixes, management_ports(rules)));
    }
    AccessGroup {
        name: "managers",
        rules: found,
    }
}

/// Access of private networks.
pub(crate) fn private(rules: &RuleSet) -> AccessGroup {
    let dns = rules.input.dns_port.map(|own| {
        let ports = [number::TCP, number::UDP].map(|protocol| port(protocol, own));
        access("dns", any(), ports.to_vec())
    });
    AccessGroup {
        name: "private",
        rules: dns.into_iter().collect(),
    }
}

fn access(name: &str, sources: Vec<IpNet>, protocols: Vec<ProtocolMatch>) -> Rule {
    Rule {
        id: RuleId {
            controller: Controller::Firewall,
            object: format!("input/{name}"),
            rule: 0,
        },
        direction: Direction::Any,
        sources,
        destinations: any(),
        names: Vec::new(),
        protocols,
        action: Action::Accept,
        log: false,
    }
}

fn management_ports(rules: &RuleSet) -> Vec<ProtocolMatch> {
    let ports = rules.input.management_ports.iter();
    ports.map(|own| port(number::TCP, *own)).collect()
}

fn dhcp() -> Vec<ProtocolMatch> {
    [DHCP_CLIENT, DHCP6_CLIENT]
        .map(|own| port(number::UDP, own))
        .to_vec()
}

fn port(protocol: u8, port: u16) -> ProtocolMatch {
    ProtocolMatch::Ports {
        protocol,
        first: port,
        last: port,
    }
}

fn icmp6(kinds: &[u8]) -> Vec<ProtocolMatch> {
    let protocol = number::ICMP6;
    let kinds = kinds.iter();
    kinds
        .map(|kind| ProtocolMatch::IcmpType {
            protocol,
            kind: *kind,
        })
        .collect()
}

/// fe80::/10
fn link_local() -> Vec<IpNet> {
    let prefix = Ipv6Net::new(std::net::Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 0), 10);
    prefix.into_iter().map(IpNet::V6).collect()
}

/// 10.0.0.0/8, where the published base rules expect the tunnels of the fabric.
fn published_underlay() -> Vec<IpNet> {
    let prefix = Ipv4Net::new(std::net::Ipv4Addr::new(10, 0, 0, 0), 8);
    prefix.into_iter().map(IpNet::V4).collect()
}
