use std::collections::BTreeSet;
use std::net::IpAddr;

use base_outbound::{is_for_private_use, is_special};
use ipnet::IpNet;

use crate::rule::{NetworkKind, RuleSet};

/// Which addresses a name may be resolved to. Whoever owns a name chooses its addresses, so that a
/// tenant could name addresses inside that no policy may reach (DNS rebinding).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressGuard {
    /// Prefixes of private networks and of the underlay.
    inside: Vec<IpNet>,
    /// Addresses of the firewall, and broadcast addresses.
    own: BTreeSet<IpAddr>,
    /// Those that the rules name.
    named: BTreeSet<IpAddr>,
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
            own: BTreeSet::new(),
            named: named(rules),
            outside: outside.chain(rules.allowed_egress.clone()).collect(),
            allowed: rules.allowed_egress.clone(),
        }
    }

    /// The guard of a host with these addresses.
    #[must_use]
    pub fn with_own(mut self, own: &BTreeSet<IpAddr>) -> Self {
        self.own.clone_from(own);
        self
    }

    /// The addresses of this host.
    #[must_use]
    pub fn own(&self) -> &BTreeSet<IpAddr> {
        &self.own
    }

    /// `true` if a name may be resolved to the address.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        let is_in = |prefixes: &[IpNet]| prefixes.iter().any(|net| net.contains(&address));
        !is_special(address)
            && !is_in(&self.inside)
            && !self.own.contains(&address)
            && !self.named.contains(&address)
            && (!is_for_private_use(address) || is_in(&self.outside))
            && (self.allowed.is_empty() || is_in(&self.allowed))
    }
}

/// Addresses of the firewall in rules, and the broadcast addresses of networks.
fn named(rules: &RuleSet) -> BTreeSet<IpAddr> {
    let translated = rules.networks.iter();
    let translated = translated.flat_map(|network| network.nat_addresses.clone());
    let listen = rules.resolver.iter();
    let listen = listen.flat_map(|resolver| resolver.listen.clone());
    let prefixes = rules.networks.iter().flat_map(|network| &network.prefixes);
    let broadcast = prefixes.filter_map(|prefix| match prefix {
        // A prefix of one or two addresses has none (RFC 3021).
        IpNet::V4(prefix) if prefix.prefix_len() < 31 => Some(IpAddr::V4(prefix.broadcast())),
        _ => None,
    });
    translated.chain(listen).chain(broadcast).collect()
}

#[cfg(test)]
mod tests {
    use super::AddressGuard;
    use crate::admit::admit;
    use crate::config::Config;

    #[test]
    fn the_firewalls_addresses_and_broadcast_ones_are_not_learned() {
        let text = "
sources:
  static:
    firewall:
      networks:
      - {networkID: tenant, networkType: private, vrf: 42, prefixes: [10.0.0.0/8]}
      - {networkID: internet, networkType: external, vrf: 104, prefixes: [203.0.113.0/24, 192.0.2.0/31]}
      egressRules: [{networkID: internet, ips: [198.51.100.7]}]
      dnsServerAddress: 192.0.2.53
      dnsListenAddresses: [198.51.100.8]
controllers: {firewall: {source: static}}
";
        let admitted = admit(&Config::parse(text).unwrap());
        assert_eq!(admitted.problems, vec![]);
        let guard = AddressGuard::new(&admitted.rules);
        let guard = guard.with_own(&["203.0.113.9".parse().unwrap()].into());
        for (address, expected) in [
            ("198.51.100.7", false),
            ("198.51.100.8", false),
            ("203.0.113.9", false),
            ("203.0.113.255", false),
            ("203.0.113.254", true),
            ("192.0.2.1", true),
        ] {
            assert_eq!(
                guard.allows(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }

    #[test]
    fn addresses_inside_are_not_learned() {
        let nets = |text: &str| {
            text.split_whitespace()
                .map(|net| net.parse().unwrap())
                .collect()
        };
        let addresses = |text: &str| {
            let all = text.split_whitespace();
            all.map(|own| own.parse().unwrap()).collect()
        };
        let open = AddressGuard {
            inside: nets("198.51.100.0/24 2001:db8:a::/48"),
            own: addresses("203.0.113.254"),
            named: addresses("203.0.113.255 2001:db8:b::fe"),
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
            ("198.51.100.1", false, false),
            ("203.0.113.254", false, false),
            ("203.0.113.255", false, false),
            ("2001:db8:b::fe", false, false),
            ("198.18.0.1", false, false),
            ("198.19.255.255", false, false),
            ("198.20.0.1", true, false),
            ("192.0.0.170", false, false),
            ("192.0.1.1", true, false),
            ("2001::1", false, false),
            ("2001:0:a00:1::1", false, false),
            ("2001:200::1", true, false),
            ("2001:db8:b::5efe:a00:1", false, false),
            ("2001:db8:b::200:5efe:a00:1", false, false),
            ("::ffff:0:203.0.113.7", false, false),
            ("100::1", false, false),
            ("100:0:0:1::1", true, false),
            ("5f00::1", false, false),
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
