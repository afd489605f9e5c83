//! Rules whose destinations are names.
//!
//! Each name and family has a set of addresses with timeouts, which the DNS proxy fills. A rule of
//! the layer's chain matches if the destination is in the set of a name, and the rest of the packet
//! is a key of the map of that name: sources and ports of the rules that have it. Sets of names have
//! no epoch: what was learned stays when rules change.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::entries::for_each_entry;
use super::keys;
use super::layer::{finish, match_shape};
use super::layers::Layer;
use super::shape::Shape;
use crate::model::{Chain, Element, Expression, NftSet, NftTable, SetSpec};
use crate::rule::{NameSelector, Rule, prefixes};

type Entries = BTreeMap<Vec<u8>, Element>;

/// Adds the chain, the maps, the sets of names and the counters of a layer.
pub(super) fn add(table: &mut NftTable, layer: &Layer<'_>) {
    let has_counters = !layer.is_extra;
    let mut groups: BTreeMap<(&NameSelector, Shape), Entries> = BTreeMap::new();
    for rule in &layer.rules {
        let counter = rule.id.counter();
        table.counters.insert(counter.clone());
        // The destination is in the set of the name, and in no key.
        let everywhere = Rule {
            destinations: prefixes::any(),
            ..(*rule).clone()
        };
        for_each_entry(&everywhere, |shape, key| {
            let element = if has_counters {
                Element::Counter(counter.clone())
            } else {
                Element::Member
            };
            for name in &rule.names {
                let keys = groups.entry((name, shape)).or_default();
                keys.entry(key.clone()).or_insert_with(|| element.clone());
            }
        });
    }
    let mut chain = Chain::default();
    for ((name, shape), elements) in groups {
        let set = declare(table, name, shape.is_ipv4);
        let mut expressions = keys::family(shape.is_ipv4).to_vec();
        let whole = if shape.is_ipv4 { 32 } else { 128 };
        keys::address(shape.is_ipv4, false, whole, 0, &mut expressions);
        expressions.push(Expression::Lookup {
            set,
            register: 0,
            destination: None,
        });
        let map = format!("{}.{}.{}", layer.name, short(name), shape.name());
        let match_ = match_shape(table, map, &shape, elements, has_counters);
        expressions.extend(match_);
        chain.rules.push(finish(layer, expressions));
    }
    table.chains.insert(layer.name.clone(), chain);
}

/// Adds the set of a name; returns its name.
fn declare(table: &mut NftTable, name: &NameSelector, is_ipv4: bool) -> String {
    let set = name.set(is_ipv4);
    table.sets.entry(set.clone()).or_insert_with(|| NftSet {
        spec: spec(is_ipv4),
        elements: BTreeMap::new(),
    });
    set
}

/// Layout of the sets of names.
fn spec(is_ipv4: bool) -> SetSpec {
    let (kind, len) = if is_ipv4 {
        (SetSpec::IPV4, 4)
    } else {
        (SetSpec::IPV6, 16)
    };
    SetSpec {
        has_timeout: true,
        ..SetSpec::members(kind, len)
    }
}

/// A part of a map's name that stands for a DNS name, which may be too long for it.
fn short(name: &NameSelector) -> String {
    // Its keys are constants: equal names are equal in every process.
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
