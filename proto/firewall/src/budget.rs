use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::prefix_count::PrefixCount;
use crate::{ProtocolMatch, RuleShare, Violation};

/// Entries that one rule may have: sources × destinations × blocks of ports. More would let one
/// tenant fill a firewall's memory; a rule beyond it is refused. A field may have as many prefixes:
/// each is in an entry.
pub const ENTRIES_MAX: usize = 16_384;

/// Entries that all rules of a firewall together may have. It bounds the memory of the kernel's
/// maps: about 150 bytes each.
pub const ENTRIES_TOTAL_MAX: usize = 524_288;

/// Different names and patterns that all policies of a firewall together may have. A new flow costs
/// a lookup for each of them at most, and a DNS answer a comparison.
pub const NAMES_TOTAL_MAX: usize = 512;

/// Prefixes that are made of the objects of one set, and by a firewall of all its objects: twice the
/// entries, because an entry needs a source and a destination. Objects after it are refused unread.
pub const PREFIXES_TOTAL_MAX: usize = 2 * ENTRIES_TOTAL_MAX;

/// Number of entries of a rule in the kernel: for each family, sources × destinations × blocks of
/// ports. `names` is the number of names that its destinations also have; 0 means none.
#[must_use]
pub fn entry_count(
    sources: &[IpNet],
    destinations: &[IpNet],
    protocols: &[ProtocolMatch],
    names: usize,
) -> usize {
    let [sources, destinations] = [sources, destinations].map(PrefixCount::of_prefixes);
    entries(sources, destinations, protocols, names)
}

/// As [`entry_count`], by the numbers of prefixes.
pub(crate) fn entries(
    sources: PrefixCount,
    destinations: PrefixCount,
    protocols: &[ProtocolMatch],
    names: usize,
) -> usize {
    let of_family = |pairs: usize, is_ipv4: bool| {
        let protocols = protocols.iter().filter(|own| own.fits(is_ipv4));
        let blocks: usize = protocols.map(|own| own.blocks()).sum();
        pairs.saturating_mul(blocks)
    };
    let ipv4 = of_family(sources.ipv4.saturating_mul(destinations.ipv4), true);
    let ipv6 = of_family(sources.ipv6.saturating_mul(destinations.ipv6), false);
    ipv4.saturating_add(ipv6).saturating_mul(names.max(1))
}

/// The amounts that the rules of a firewall have taken of its bounds. `N` is a name or pattern of the
/// DNS.
#[derive(Clone, Debug)]
pub struct RuleBudget<N = crate::NamePattern> {
    share: RuleShare,
    pub(crate) entries: usize,
    pub(crate) names: BTreeSet<N>,
}

impl<N> Default for RuleBudget<N> {
    /// Nothing is taken of the bounds of a firewall.
    fn default() -> Self {
        Self::of(RuleShare::FIREWALL)
    }
}

impl<N> RuleBudget<N> {
    /// Nothing is taken of a share.
    #[must_use]
    pub fn of(share: RuleShare) -> Self {
        Self {
            share,
            entries: 0,
            names: BTreeSet::new(),
        }
    }
}

impl<N: Ord + Clone> RuleBudget<N> {
    /// Takes what a rule with so many entries and these names needs, each name once.
    ///
    /// # Errors
    /// It needs more than is left, or has no entry. Nothing is taken then.
    pub fn take<'a>(
        &mut self,
        entries: usize,
        names: impl Iterator<Item = &'a N> + Clone,
    ) -> Result<(), Violation>
    where
        N: 'a,
    {
        let new = names.clone().filter(|name| !self.names.contains(name));
        let RuleShare {
            entries: entries_max,
            names: names_max,
        } = self.share;
        if self.names.len() + new.count() > names_max {
            let problem = format!("all policies together have more than {names_max} names");
            let remedy = "use patterns, or fewer names";
            return Err(Violation::new("toFQDNs", problem, remedy));
        }
        if entries == 0 {
            let problem = "source, destination and protocol have no address family in common";
            let remedy = "use IPv4 on both sides, or IPv6";
            return Err(Violation::new("from", problem, remedy));
        }
        if entries > ENTRIES_MAX || self.entries.saturating_add(entries) > entries_max {
            let problem = format!(
                "it needs {entries} entries: one for each source, destination and block of ports; \
                 a rule may have {ENTRIES_MAX}, all together {entries_max}"
            );
            let remedy = "use shorter prefixes, or fewer ports";
            return Err(Violation::new("ports", problem, remedy));
        }
        self.entries += entries;
        self.names.extend(names.cloned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES_MAX, ENTRIES_TOTAL_MAX, NAMES_TOTAL_MAX, RuleBudget, entry_count};
    use crate::{ProtocolMatch, prefixes::any};

    #[test]
    fn entries_are_counted_for_each_family() {
        let ports = |first, last| ProtocolMatch::Ports {
            protocol: 6,
            first,
            last,
        };
        let icmp = ProtocolMatch::Protocol(1);
        for (protocols, names, expected) in [
            (vec![ProtocolMatch::Any], 0, 2),
            (vec![icmp], 0, 1),
            (vec![icmp, ports(80, 80)], 0, 3),
            (vec![ports(443, 448)], 0, 6),
            (vec![ports(1, 65_535)], 0, 32),
            (vec![ports(0, 65_535)], 0, 2),
            (vec![ports(80, 80)], 7, 14),
            (vec![], 0, 0),
        ] {
            let count = entry_count(&any(), &any(), &protocols, names);
            assert_eq!(count, expected, "{protocols:?} {names}");
        }
        assert_eq!(entry_count(&any()[..1], &any()[1..], &[icmp], 0), 0);
    }

    #[test]
    fn a_budget_ends_and_a_refused_rule_takes_nothing() {
        let mut budget = RuleBudget::<u32>::default();
        let nothing = [].iter();
        assert!(budget.take(ENTRIES_MAX + 1, nothing.clone()).is_err());
        assert!(budget.take(0, nothing.clone()).is_err());
        for _ in 0..ENTRIES_TOTAL_MAX / ENTRIES_MAX - 1 {
            budget.take(ENTRIES_MAX, nothing.clone()).unwrap();
        }
        budget.take(ENTRIES_MAX - 1, nothing.clone()).unwrap();
        assert!(budget.take(2, nothing.clone()).is_err());
        budget.take(1, nothing.clone()).unwrap();
        assert!(budget.take(1, nothing).is_err());

        let names: Vec<u32> = (0..=u32::try_from(NAMES_TOTAL_MAX).unwrap()).collect();
        let mut budget = RuleBudget::default();
        assert!(budget.take(1, names.iter()).is_err());
        budget.take(1, names[1..].iter()).unwrap();
        budget.take(1, names[1..9].iter()).unwrap();
        assert!(budget.take(1, names[..1].iter()).is_err());
    }
}
