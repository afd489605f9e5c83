//! Counts the traffic of private networks, apart for internal and external addresses.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::frame::{by_interface, rule};
use super::keys;
use crate::model::{
    Chain, Element, Expression, MetaKey, NftRule, NftSet, NftTable, SetSpec, Verdict,
};
use crate::rule::RuleSet;
use crate::rule::prefixes::{is_ipv4, merged};

/// Counter of packets from internal addresses into private networks, with the published name.
pub const INTERNAL_IN: &str = "internal_in";
/// Counter of packets from private networks to internal addresses.
pub const INTERNAL_OUT: &str = "internal_out";
/// Counter of packets from other addresses into private networks.
pub const EXTERNAL_IN: &str = "external_in";
/// Counter of packets from private networks to other addresses.
pub const EXTERNAL_OUT: &str = "external_out";

/// One direction of the accounting.
struct Way {
    chain: &'static str,
    interface: MetaKey,
    /// `true` if the other side is the source.
    by_source: bool,
    internal: &'static str,
    external: &'static str,
}

const WAYS: [Way; 2] = [
    Way {
        chain: "accounting-in",
        interface: MetaKey::OutputName,
        by_source: true,
        internal: INTERNAL_IN,
        external: EXTERNAL_IN,
    },
    Way {
        chain: "accounting-out",
        interface: MetaKey::InputName,
        by_source: false,
        internal: INTERNAL_OUT,
        external: EXTERNAL_OUT,
    },
];

/// Adds chains, sets and counters; returns the rules that lead to them, for the beginning of the
/// forward chain. Nothing without internal prefixes.
pub(super) fn add(table: &mut NftTable, rules: &RuleSet, private: &str) -> Vec<NftRule> {
    if rules.internal_prefixes.is_empty() {
        return Vec::new();
    }
    let sets = add_sets(table, &rules.internal_prefixes);
    let mut jumps = Vec::new();
    for way in WAYS {
        let mut chain = Chain::default();
        for set in &sets {
            let mut expressions = keys::family(set.is_ipv4).to_vec();
            if set.prefix_len > 0 {
                let (family, len) = (set.is_ipv4, set.prefix_len);
                keys::address(family, way.by_source, len, 0, &mut expressions);
                expressions.push(Expression::Lookup {
                    set: set.name.clone(),
                    register: 0,
                    destination: None,
                });
            }
            expressions.push(Expression::Count(way.internal.to_owned()));
            chain.rules.push(rule(expressions, Some(Verdict::Return)));
        }
        let other = vec![Expression::Count(way.external.to_owned())];
        chain.rules.push(rule(other, None));
        for counter in [way.internal, way.external] {
            table.counters.insert(counter.to_owned());
        }
        table.chains.insert(way.chain.to_owned(), chain);
        let jump = Verdict::Jump(way.chain.to_owned());
        jumps.push(rule(by_interface(way.interface, private), Some(jump)));
    }
    jumps
}

/// A set of the internal prefixes of one length.
struct PrefixSet {
    name: String,
    is_ipv4: bool,
    prefix_len: u8,
}

fn add_sets(table: &mut NftTable, prefixes: &[IpNet]) -> Vec<PrefixSet> {
    let mut groups: BTreeMap<(bool, u8), BTreeMap<Vec<u8>, Element>> = BTreeMap::new();
    for prefix in merged(prefixes) {
        let key = match prefix.network() {
            std::net::IpAddr::V4(address) => address.octets().to_vec(),
            std::net::IpAddr::V6(address) => address.octets().to_vec(),
        };
        let group = groups.entry((is_ipv4(&prefix), prefix.prefix_len()));
        group.or_default().insert(key, Element::Member);
    }
    let mut sets = Vec::new();
    for ((is_ipv4, prefix_len), elements) in groups {
        let (family, kind, len) = if is_ipv4 {
            (4, SetSpec::IPV4, 4)
        } else {
            (6, SetSpec::IPV6, 16)
        };
        let name = format!("internal{family}/{prefix_len}");
        if prefix_len > 0 {
            let spec = SetSpec::members(kind, len);
            table.sets.insert(name.clone(), NftSet { spec, elements });
        }
        sets.push(PrefixSet {
            name,
            is_ipv4,
            prefix_len,
        });
    }
    sets
}
