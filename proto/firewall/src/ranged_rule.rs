use std::collections::BTreeSet;

use crate::address_range::{self, AddressRange};
use crate::budget::entries;
use crate::prefix_count::PrefixCount;
use crate::{Action, CheckedRule, Direction, NamePattern, ProtocolMatch, RuleList};

/// A rule that passed the check, before its prefixes are made: some need thousands, and their number
/// is known without them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangedRule {
    pub(crate) list: RuleList,
    pub(crate) name: String,
    pub(crate) action: Action,
    pub(crate) direction: Direction,
    /// Sources, sorted, none adjoining another.
    pub(crate) sources: Vec<AddressRange>,
    /// Destinations, as the sources. `None` means names of the DNS.
    pub(crate) destinations: Option<Vec<AddressRange>>,
    pub(crate) names: BTreeSet<NamePattern>,
    pub(crate) protocols: Vec<ProtocolMatch>,
}

impl RangedRule {
    /// Number of its entries in the kernel.
    pub(crate) fn entries(&self) -> usize {
        let destinations = self.destinations.as_deref();
        entries(
            PrefixCount::of_ranges(&self.sources),
            destinations.map_or(PrefixCount::ANY, PrefixCount::of_ranges),
            &self.protocols,
            self.names.len(),
        )
    }

    /// Number of the prefixes that are made of it.
    pub(crate) fn prefixes(&self) -> usize {
        let destinations = self.destinations.as_deref().unwrap_or_default();
        let sides = [&self.sources[..], destinations].map(PrefixCount::of_ranges);
        sides.iter().map(|side| side.total()).sum()
    }

    /// The rule with its prefixes.
    pub(crate) fn into_checked(self) -> CheckedRule {
        let destinations = self.destinations.as_deref();
        CheckedRule {
            sources: address_range::prefixes(&self.sources),
            destinations: destinations.map(address_range::prefixes),
            list: self.list,
            name: self.name,
            action: self.action,
            direction: self.direction,
            names: self.names,
            protocols: self.protocols,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::check::ranged_policy;
    use crate::prefix_count::PrefixCount;
    use crate::{
        AddressBlock, NamePattern, PortSpec, RuleList, RuleOwner, RuleScope, RuleSpec, entry_count,
        prefixes,
    };

    const SCOPE: RuleScope<'static> = RuleScope {
        owner: RuleOwner::Tenant,
        network: None,
    };

    /// A prefix in another one, by its length and bits.
    fn prefix_in(outer: ipnet::IpNet, len: u8, bits: u128) -> String {
        let len = len.max(outer.prefix_len()).min(outer.max_prefix_len());
        let inner = match outer {
            ipnet::IpNet::V4(outer) => {
                let bits = u32::try_from(bits & u128::from(u32::from(outer.hostmask())));
                let address = u32::from(outer.network()) | bits.unwrap_or(0);
                ipnet::IpNet::new(std::net::Ipv4Addr::from(address).into(), len)
            }
            ipnet::IpNet::V6(outer) => {
                let address = u128::from(outer.network()) | (bits & u128::from(outer.hostmask()));
                ipnet::IpNet::new(std::net::Ipv6Addr::from(address).into(), len)
            }
        };
        inner.unwrap().trunc().to_string()
    }

    fn block() -> impl Strategy<Value = AddressBlock> {
        let outer = proptest::sample::select(
            &[
                "0.0.0.0/0",
                "10.0.0.0/8",
                "10.1.0.0/16",
                "11.0.0.0/8",
                "192.0.2.7/32",
                "255.255.255.0/24",
                "::/0",
                "fd00::/8",
                "2001:db8::/32",
                "ffff:ffff::/32",
            ][..],
        );
        let holes = proptest::collection::vec((any::<u8>(), any::<u128>()), 0..6);
        (outer, holes).prop_map(|(outer, holes)| {
            let net: ipnet::IpNet = outer.parse().unwrap();
            let holes = holes.into_iter();
            AddressBlock {
                cidr: outer.to_owned(),
                except: holes
                    .map(|(len, bits)| prefix_in(net, len % 129, bits))
                    .collect(),
            }
        })
    }

    fn ports() -> impl Strategy<Value = Vec<PortSpec>> {
        let port = (1_u32..65_535, 0_u32..65_535).prop_map(|(port, length)| PortSpec {
            port: Some(port),
            end_port: Some((port + length).min(65_535)),
            ..PortSpec::default()
        });
        let ping = Just(PortSpec {
            protocol: Some("ICMP".to_owned()),
            ..PortSpec::default()
        });
        proptest::collection::vec(prop_oneof![port, ping], 0..3)
    }

    fn policy() -> impl Strategy<Value = RuleSpec> {
        let blocks = || proptest::collection::vec(block(), 0..4);
        (blocks(), blocks(), ports(), 0_usize..3).prop_map(|(from, to, ports, names)| {
            let names = (0..names).map(|name| NamePattern {
                match_name: Some(format!("n{name}.example")),
                match_pattern: None,
            });
            let names: Vec<_> = names.collect();
            RuleSpec {
                from,
                to: if names.is_empty() { to } else { vec![] },
                to_fqdns: names,
                ports,
                ..RuleSpec::default()
            }
        })
    }

    proptest! {
        #[test]
        fn ranges_count_the_prefixes_that_are_made_of_them(spec in policy()) {
            let ranged = ranged_policy("x".to_owned(), &spec, RuleList::Egress, SCOPE);
            // Exceptions may leave no address.
            prop_assume!(ranged.is_ok());
            let ranged = ranged.unwrap();
            let (entries, count) = (ranged.entries(), ranged.prefixes());
            let sources = PrefixCount::of_ranges(&ranged.sources);
            let rule = ranged.into_checked();
            prop_assert_eq!(sources, PrefixCount::of_prefixes(&rule.sources));
            let named = rule.destinations.as_ref().map_or(0, Vec::len);
            prop_assert_eq!(count, rule.sources.len() + named);
            let destinations = rule.destinations.unwrap_or_else(prefixes::any);
            let made = entry_count(
                &rule.sources, &destinations, &rule.protocols, rule.names.len(),
            );
            prop_assert_eq!(entries, made);
        }
    }
}
