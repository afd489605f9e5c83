use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::rule::{NetworkKind, RuleSet};

/// Which addresses a name may be resolved to. Whoever owns a name chooses its addresses, so that a
/// tenant could name addresses inside that no policy may reach (DNS rebinding).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressGuard {
    /// Prefixes of private networks and of the underlay.
    inside: Vec<IpNet>,
    /// Prefixes that the operator allows, and those of external networks: addresses there may be of
    /// the ranges for private use.
    outside: Vec<IpNet>,
    /// Prefixes that tenants may reach. Empty means all.
    allowed: Vec<IpNet>,
}

impl AddressGuard {
    /// The guard of a configuration.
    #[must_use]
    pub fn new(rules: &RuleSet) -> Self {
        let of = |is_external: bool| {
            let networks = rules.networks.iter();
            networks
                .filter(move |network| (network.kind == NetworkKind::External) == is_external)
                .flat_map(|network| network.prefixes.clone())
        };
        // The default route names no address in particular.
        let outside = of(true).filter(|prefix| prefix.prefix_len() > 0);
        Self {
            inside: of(false).collect(),
            outside: outside.chain(rules.allowed_egress.clone()).collect(),
            allowed: rules.allowed_egress.clone(),
        }
    }

    /// `true` if a name may be resolved to the address.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        let is_in = |prefixes: &[IpNet]| prefixes.iter().any(|net| net.contains(&address));
        let is_special = match address {
            IpAddr::V4(address) => is_special_v4(address),
            IpAddr::V6(address) => is_special_v6(address),
        };
        let is_for_private_use = match address {
            IpAddr::V4(address) => is_private_v4(address),
            IpAddr::V6(address) => address.is_unique_local(),
        };
        !is_special
            && !is_in(&self.inside)
            && (!is_for_private_use || is_in(&self.outside))
            && (self.allowed.is_empty() || is_in(&self.allowed))
    }
}

/// Addresses that lead to no other host, or to many.
fn is_special_v4(address: Ipv4Addr) -> bool {
    // 0.0.0.0/8 is this host; 240.0.0.0/4 has the broadcast address.
    let first = address.octets()[0];
    first == 0
        || first >= 240
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    // 100.64.0.0/10 is shared by providers and their customers (RFC 6598).
    address.is_private() || (first == 100 && (64..128).contains(&second))
}

fn is_special_v6(address: Ipv6Addr) -> bool {
    // Forms that carry an IPv4 address (mapped, compatible, NAT64, 6to4) would go around the checks
    // of IPv4 addresses.
    let [first, second, third, fourth, fifth, ..] = address.segments();
    let carries_ipv4 = (first, second, third, fourth, fifth) == (0, 0, 0, 0, 0)
        || (first == 0x64 && second == 0xFF9B)
        || first == 0x2002;
    carries_ipv4
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_unicast_link_local()
        // Site-local addresses, which some hosts still route.
        || first & 0xFFC0 == 0xFEC0
}

#[cfg(test)]
mod tests {
    use super::AddressGuard;

    #[test]
    fn addresses_inside_are_not_learned() {
        let nets = |text: &str| {
            text.split_whitespace()
                .map(|net| net.parse().unwrap())
                .collect()
        };
        let open = AddressGuard {
            inside: nets("198.18.0.0/15 2001:db8:a::/48"),
            outside: nets("10.99.0.0/16 fd99::/16"),
            allowed: nets(""),
        };
        let closed = AddressGuard {
            outside: nets("192.0.2.0/24"),
            allowed: nets("192.0.2.0/24"),
            ..open.clone()
        };
        for (address, in_open, in_closed) in [
            ("203.0.113.7", true, false),
            ("192.0.2.7", true, true),
            ("198.18.0.1", false, false),
            ("2001:db8:a::1", false, false),
            ("2001:db8:b::1", true, false),
            ("10.0.0.1", false, false),
            ("10.99.0.1", true, false),
            ("fd99::1", true, false),
            ("fd00::1", false, false),
            ("172.16.0.1", false, false),
            ("192.168.1.1", false, false),
            ("100.64.0.1", false, false),
            ("127.0.0.1", false, false),
            ("169.254.169.254", false, false),
            ("0.0.0.0", false, false),
            ("224.0.0.1", false, false),
            ("255.255.255.255", false, false),
            ("::", false, false),
            ("::1", false, false),
            ("::ffff:203.0.113.7", false, false),
            ("::203.0.113.7", false, false),
            ("64:ff9b::203.0.113.7", false, false),
            ("2002:a00:1::1", false, false),
            ("fe80::1", false, false),
            ("fec0::1", false, false),
            ("ff02::1", false, false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(open.allows(address), in_open, "{address}");
            assert_eq!(closed.allows(address), in_closed, "{address}");
        }
    }
}
