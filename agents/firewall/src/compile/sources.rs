//! The check of sources: a packet whose source does not belong to the network that it comes from is
//! dropped before any rule decides about it.
//!
//! Rules compare addresses, so that a forged source would be let through by another network's rules.
//! Packets of bound flows are not checked: they pass before it, from the networks of their flow
//! ([`super::flows`]). Those of other established flows are.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::epoch;
use super::frame::{add_interfaces, by_interface, rule};
use super::keys;
use super::layer::{PREFIX_DROPPED, log, match_shape};
use super::shape::{Shape, TransportShape};
use super::source_rule::{SourceCheck, SourceRule};
use crate::model::{Chain, Element, Expression, MetaKey, NftRule, NftTable, Verdict};
use crate::rule::RuleSet;
use crate::rule::prefixes::is_ipv4;

/// Adds the chains, sets and the counter of a check; returns the rule that leads to it. `None` if
/// there is nothing to check.
pub(super) fn add(table: &mut NftTable, rules: &RuleSet, check: &SourceCheck) -> Option<NftRule> {
    if check.rules.is_empty() {
        return None;
    }
    table.counters.insert(check.counter.to_owned());
    let count = vec![Expression::Count(check.counter.to_owned())];
    let dropping = vec![
        rule(log(PREFIX_DROPPED).to_vec(), None),
        rule(count, Some(Verdict::Drop)),
    ];
    let spoofed = Chain {
        base: None,
        rules: dropping,
    };
    table.chains.insert(check.spoofed.to_owned(), spoofed);
    // Packets that are in the middle of old rules find the old sets.
    let name = format!("{}.{}", check.name, epoch::of_sources(rules));
    let mut chain = Chain::default();
    for (index, own) in check.rules.iter().enumerate() {
        add_rule(
            table,
            &mut chain,
            &format!("{name}.{index}"),
            own,
            check.spoofed,
        );
    }
    table.chains.insert(name.clone(), chain);
    Some(rule(Vec::new(), Some(Verdict::Jump(name))))
}

/// Adds the nftables rules of a rule: one for each length of its prefixes.
fn add_rule(table: &mut NftTable, chain: &mut Chain, name: &str, own: &SourceRule, spoofed: &str) {
    let mut interfaces = Vec::new();
    for (key, names, side) in [
        (MetaKey::InputName, &own.inputs, "in"),
        (MetaKey::OutputName, &own.outputs, "out"),
    ] {
        if let Some(names) = names {
            let set = format!("{name}.{side}");
            add_interfaces(table, &set, names);
            interfaces.extend(by_interface(key, &set));
        }
    }
    let verdict = if own.is_spoofed {
        Verdict::Jump(spoofed.to_owned())
    } else {
        Verdict::Return
    };
    let Some(sources) = &own.sources else {
        chain.rules.push(rule(interfaces, Some(verdict)));
        return;
    };
    for (shape, elements) in by_shape(sources, own.is_by_destination) {
        let mut expressions = interfaces.clone();
        expressions.extend(keys::family(shape.is_ipv4));
        let set = format!("{name}.{}", shape.name());
        expressions.extend(match_shape(table, set, &shape, elements, false));
        chain.rules.push(rule(expressions, Some(verdict.clone())));
    }
}

/// The prefixes as keys, by their family and length.
fn by_shape(
    prefixes: &[IpNet],
    is_by_destination: bool,
) -> BTreeMap<Shape, BTreeMap<Vec<u8>, Element>> {
    let mut shapes: BTreeMap<Shape, BTreeMap<Vec<u8>, Element>> = BTreeMap::new();
    for prefix in prefixes {
        let len = prefix.prefix_len();
        let (source_len, destination_len) = if is_by_destination {
            (0, len)
        } else {
            (len, 0)
        };
        let shape = Shape {
            is_ipv4: is_ipv4(prefix),
            source_len,
            destination_len,
            transport: TransportShape::Any,
        };
        let key = match prefix.network() {
            std::net::IpAddr::V4(address) => address.octets().to_vec(),
            std::net::IpAddr::V6(address) => address.octets().to_vec(),
        };
        shapes
            .entry(shape)
            .or_default()
            .insert(key, Element::Member);
    }
    shapes
}
