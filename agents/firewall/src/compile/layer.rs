use std::collections::BTreeMap;

use super::entries::for_each_entry;
use super::keys;
use super::layers::Layer;
use super::shape::Shape;
use crate::model::{Chain, Element, Expression, NftRule, NftSet, NftTable, Verdict};
use crate::rule::Action;

/// Log lines of a layer, per second. More would let a stranger fill the log.
const LOG_LINES_PER_SECOND: u32 = 10;
/// Prefixes of log lines, those that droptailer knows.
const PREFIX_ACCEPTED: &str = "nftables-firewall-accepted: ";
pub(crate) const PREFIX_DROPPED: &str = "nftables-firewall-dropped: ";

/// Adds the chain, the maps and the counters of a layer; `true` if several of its rules have an equal
/// entry.
pub(super) fn add(table: &mut NftTable, layer: &Layer<'_>) -> bool {
    let mut shapes: BTreeMap<Shape, Vec<(Vec<u8>, Element)>> = BTreeMap::new();
    // Only entries that decide count; those of an extra layer for logging do not count twice.
    let has_counters = !layer.is_extra;
    let mut counters = Vec::with_capacity(layer.rules.len());
    for rule in &layer.rules {
        let counter = rule.id.counter();
        for_each_entry(rule, |shape, key| {
            let element = if has_counters {
                Element::Counter(counter.clone())
            } else {
                Element::Member
            };
            shapes.entry(shape).or_default().push((key, element));
        });
        counters.push(counter);
    }
    table.counters.extend(counters);
    let mut chain = Chain::default();
    let mut has_shared_entries = false;
    for (shape, mut elements) in shapes {
        // The first of two rules with an equal entry has it: both have the same effect. The sort is
        // stable, and of sorted pairs a map is built at once.
        elements.sort_by(|(one, _), (other, _)| one.cmp(other));
        let count = elements.len();
        elements.dedup_by(|(next, _), (kept, _)| next == kept);
        has_shared_entries |= elements.len() < count;
        let elements = elements.into_iter().collect();
        let rule = add_shape(table, layer, &shape, elements, has_counters);
        chain.rules.push(rule);
    }
    table.chains.insert(layer.name.clone(), chain);
    has_shared_entries
}

/// The rule of one shape; adds its map.
fn add_shape(
    table: &mut NftTable,
    layer: &Layer<'_>,
    shape: &Shape,
    elements: BTreeMap<Vec<u8>, Element>,
    has_counters: bool,
) -> NftRule {
    let mut expressions = keys::family(shape.is_ipv4).to_vec();
    let name = format!("{}.{}", layer.name, shape.name());
    let match_ = match_shape(table, name, shape, elements, has_counters);
    expressions.extend(match_);
    finish(layer, expressions)
}

/// Matches and counts the entries of one shape; adds their map.
pub(super) fn match_shape(
    table: &mut NftTable,
    name: String,
    shape: &Shape,
    elements: BTreeMap<Vec<u8>, Element>,
    has_counters: bool,
) -> Vec<Expression> {
    let mut expressions = Vec::new();
    if shape.is_empty() {
        // A map cannot have an empty key: the rule itself matches every packet of the family.
        if let Some(Element::Counter(counter)) = elements.into_values().next() {
            expressions.push(Expression::Count(counter));
        }
    } else {
        expressions.extend(keys::load(shape));
        expressions.push(if has_counters {
            Expression::CountByMap {
                map: name.clone(),
                register: 0,
            }
        } else {
            Expression::Lookup {
                set: name.clone(),
                register: 0,
                destination: None,
            }
        });
        let spec = keys::spec(shape, has_counters);
        table.sets.insert(name, NftSet { spec, elements });
    }
    expressions
}

/// Adds the end of a layer's rule.
pub(super) fn finish(layer: &Layer<'_>, mut expressions: Vec<Expression>) -> NftRule {
    match layer.action {
        Action::Accept => expressions.push(Expression::Verdict(Verdict::Accept)),
        Action::Drop => expressions.push(Expression::Verdict(Verdict::Drop)),
        Action::Log => expressions.extend(log(prefix(layer))),
    }
    NftRule { expressions }
}

fn prefix(layer: &Layer<'_>) -> &'static str {
    if layer.rules.iter().any(|rule| rule.action == Action::Drop) {
        PREFIX_DROPPED
    } else {
        PREFIX_ACCEPTED
    }
}

/// Logs at a bounded rate.
pub(super) fn log(prefix: &str) -> [Expression; 3] {
    [
        Expression::LimitPackets(LOG_LINES_PER_SECOND),
        // The kernel's log for those who read it, and the agent for everybody else.
        Expression::Log(prefix.to_owned()),
        Expression::Report(prefix.to_owned()),
    ]
}
