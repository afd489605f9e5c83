//! Name servers that the agents of firewalls ask for the names in policies.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use proto_types::MachineId;

use crate::catalog::entity::Partition;
use crate::firewall::read::firewall_allocation;
use crate::machine::entity::Machine;
use crate::network::entity::{Network, NetworkType};
use crate::tables::Tables;

/// Prefixes of the networks of a firewall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ServerPlaces {
    /// Those of private networks and of the underlay.
    inside: Vec<IpNet>,
    /// Those of external networks.
    outside: Vec<IpNet>,
}

/// The range that an address is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressRange {
    /// Hosts of every network.
    Public,
    /// Hosts of one site (RFC 1918, RFC 6598, RFC 4193).
    Private,
    /// Loopback, link-local, multicast, protocols, and forms of IPv6 that carry an IPv4 address.
    Special,
}

/// The servers that a firewall asks for the names in policies, in order: those of its allocation, or
/// without one that it may ask those of its partition. Empty means that none of its policies with
/// names can be in force. `None` means that the machine is allocated as no firewall.
pub(crate) fn name_servers(tables: &Tables, machine: MachineId) -> Option<Vec<IpAddr>> {
    let allocation = firewall_allocation(tables, machine)?;
    let mut places = ServerPlaces::default();
    for joined in &allocation.networks {
        let network = tables.get::<Network>(&joined.network);
        let prefixes = network.map_or(&joined.prefixes, |network| &network.prefixes);
        let side = match joined.kind {
            NetworkType::External => &mut places.outside,
            _ => &mut places.inside,
        };
        side.extend(prefixes);
    }
    let machine = tables.get::<Machine>(&machine);
    let partition = machine.and_then(|machine| machine.partition.as_ref());
    let partition = partition.and_then(|id| tables.get::<Partition>(id));
    let operators = partition.map(|partition| partition.dns_servers.as_slice());
    Some(places.asked(&allocation.dns_servers, operators.unwrap_or_default()))
}

impl ServerPlaces {
    /// The servers to ask. `named` are those of the allocation, which a project chooses; `operators`
    /// are those of the partition.
    fn asked(&self, named: &[IpAddr], operators: &[IpAddr]) -> Vec<IpAddr> {
        let own = named.iter().copied();
        let own = own.filter(|server| operators.contains(server) || self.may_ask(*server));
        let mut servers: Vec<IpAddr> = own.collect();
        if servers.is_empty() {
            servers = operators.to_vec();
        }
        // The agent refuses a whole list for one that is no address of a host.
        servers.retain(|server| !server.is_unspecified() && !server.is_multicast());
        servers
    }

    /// `true` if a firewall may ask a server that its project chose. It asks from within the
    /// underlay, which the project must not reach: so nothing inside, and nothing for private use
    /// that is not in an external network.
    fn may_ask(&self, server: IpAddr) -> bool {
        // The default route names no address in particular.
        let is_in = |prefixes: &[IpNet]| {
            let mut prefixes = prefixes.iter();
            prefixes.any(|prefix| prefix.prefix_len() > 0 && prefix.contains(&server))
        };
        match range_of(server) {
            AddressRange::Public => !is_in(&self.inside),
            AddressRange::Private => !is_in(&self.inside) && is_in(&self.outside),
            AddressRange::Special => false,
        }
    }
}

fn range_of(address: IpAddr) -> AddressRange {
    match address {
        IpAddr::V4(address) => range_of_v4(address),
        IpAddr::V6(address) => range_of_v6(address),
    }
}

fn range_of_v4(address: Ipv4Addr) -> AddressRange {
    let [first, second, third, _] = address.octets();
    let is_special = first == 0
        || first >= 224
        || (first, second, third) == (192, 0, 0)
        || address.is_loopback()
        || address.is_link_local();
    if is_special {
        AddressRange::Special
    } else if address.is_private() || (first == 100 && second & 0xC0 == 64) {
        AddressRange::Private
    } else {
        AddressRange::Public
    }
}

fn range_of_v6(address: Ipv6Addr) -> AddressRange {
    let [first, second, ..] = address.segments();
    // 2000::/3 has the addresses of hosts; in it 2001::/23 is for protocols, and 2002::/16 carries
    // IPv4 addresses.
    let is_host =
        first & 0xE000 == 0x2000 && first != 0x2002 && !(first == 0x2001 && second & 0xFE00 == 0);
    if address.is_unique_local() {
        AddressRange::Private
    } else if is_host {
        AddressRange::Public
    } else {
        AddressRange::Special
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Vec<IpAddr> {
        let words = text.split_whitespace();
        words.map(|word| word.parse().unwrap()).collect()
    }

    fn nets(text: &str) -> Vec<IpNet> {
        let words = text.split_whitespace();
        words.map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn a_project_chooses_no_server_inside() {
        let places = ServerPlaces {
            inside: nets("10.64.0.0/24 198.51.100.0/24"),
            outside: nets("0.0.0.0/0 ::/0 203.0.113.0/24 172.16.0.0/24"),
        };
        for (named, operators, expected) in [
            ("", "", ""),
            ("", "192.0.2.1", "192.0.2.1"),
            ("9.9.9.9", "192.0.2.1", "9.9.9.9"),
            ("9.9.9.9 2620:fe::fe", "", "9.9.9.9 2620:fe::fe"),
            // Of the fabric, of a private network, of a network that nobody declared.
            ("198.51.100.7", "192.0.2.1", "192.0.2.1"),
            ("10.64.0.7 9.9.9.9", "192.0.2.1", "9.9.9.9"),
            ("10.1.0.7", "", ""),
            ("100.64.0.7", "", ""),
            ("fd00::53", "", ""),
            // The operator's own may be anywhere.
            ("10.1.0.7", "10.1.0.7 10.1.0.8", "10.1.0.7"),
            ("", "127.0.0.53", "127.0.0.53"),
            ("", "0.0.0.0 ff02::fb 9.9.9.9", "9.9.9.9"),
            ("172.16.0.7 172.16.1.7", "", "172.16.0.7"),
            ("203.0.113.7", "", "203.0.113.7"),
            ("127.0.0.1", "", ""),
            ("0.0.0.0 169.254.169.254 224.0.0.251", "", ""),
            ("255.255.255.255", "", ""),
            ("::1 fe80::1 ff02::fb ::ffff:10.1.0.7", "", ""),
            ("64:ff9b::a01:7 2002:a01:7:: 2001::7", "", ""),
        ] {
            let found = places.asked(&servers(named), &servers(operators));
            assert_eq!(found, servers(expected), "{named}; {operators}");
        }
    }
}
