use ipnet::IpNet;

use crate::rule::prefixes::{contains, merged, subtract};
use crate::rule::{Network, NetworkKind, RuleSet};

/// Sources by the networks of a firewall.
pub(super) struct SourceNetworks<'a> {
    rules: &'a RuleSet,
    /// Sources that no other network than their own private or closed one has, and the firewall's own.
    pub(super) taken: Vec<IpNet>,
    /// Addresses of external networks that machines may have, too.
    pub(super) external: Vec<IpNet>,
}

impl<'a> SourceNetworks<'a> {
    pub(super) fn new(rules: &'a RuleSet) -> Self {
        let mut networks = Self {
            rules,
            taken: Vec::new(),
            external: Vec::new(),
        };
        let own = rules.networks.iter();
        let own = own.flat_map(|network| &network.nat_addresses);
        let listen = rules.resolver.iter().flat_map(|resolver| &resolver.listen);
        let mut taken: Vec<IpNet> = own.chain(listen).map(|own| IpNet::from(*own)).collect();
        let closed = rules.networks.iter();
        let closed = closed.filter(|network| network.kind == NetworkKind::Closed);
        for network in networks.known().chain(closed) {
            taken.extend(networks.own_prefixes(network));
        }
        // The default route names no address in particular.
        taken.retain(|prefix| prefix.prefix_len() > 0);
        networks.taken = merged(&taken);
        let outside = rules.networks.iter();
        let outside = outside.filter(|network| network.kind == NetworkKind::External);
        // Other addresses of the network are those of others, which rules may permit more.
        let mut external: Vec<IpNet> = outside
            .flat_map(|network| network.addresses.as_ref().unwrap_or(&network.prefixes))
            .copied()
            .collect();
        external.retain(|prefix| prefix.prefix_len() > 0);
        networks.external = merged(&external);
        networks
    }

    fn private(&self) -> impl Iterator<Item = &'a Network> + use<'a> {
        let all = self.rules.networks.iter();
        all.filter(|network| network.kind == NetworkKind::Private)
    }

    /// Private networks whose prefixes are known.
    pub(super) fn known(&self) -> impl Iterator<Item = &'a Network> + use<'a> {
        self.private()
            .filter(|network| !network.prefixes.is_empty())
    }

    /// Interfaces of private networks that name no prefix: sources of others are refused there, and
    /// nothing more can be known.
    pub(super) fn interfaces_without_prefixes(&self) -> Vec<String> {
        let unknown = self.private().filter(|network| network.prefixes.is_empty());
        unknown
            .flat_map(|network| network.interfaces.clone())
            .collect()
    }

    pub(super) fn interfaces(&self, kind: NetworkKind) -> Vec<String> {
        let networks = self.rules.networks.iter();
        networks
            .filter(|network| network.kind == kind)
            .flat_map(|network| network.interfaces.clone())
            .collect()
    }

    /// The prefixes of a network without those that another network has inside of them: an address
    /// belongs to the network with the longest prefix for it.
    pub(super) fn own_prefixes(&self, network: &Network) -> Vec<IpNet> {
        let others = self.rules.networks.iter();
        let others: Vec<IpNet> = others
            .filter(|other| other.id != network.id)
            .flat_map(|other| other.prefixes.clone())
            .filter(|prefix| !network.prefixes.contains(prefix))
            .collect();
        let own = network.prefixes.iter().flat_map(|prefix| {
            let inside = |other: &&IpNet| contains(prefix, other);
            let inside: Vec<IpNet> = others.iter().filter(inside).copied().collect();
            subtract(prefix, &inside)
        });
        merged(&own.collect::<Vec<_>>())
    }
}
