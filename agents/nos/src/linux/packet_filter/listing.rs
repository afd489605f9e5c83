//! The rules as nft lists them in JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::FilterConfig;
use super::expected::{expected, firewall};
use super::statement::{address, normal, prefix, raw_word};
use super::{CHAIN_PREFIX, FAMILIES, LINK_LOCAL, TABLE};
use crate::model::{PacketFilter, PortName, VxlanFilter};
use crate::vni::Vni;

#[derive(Deserialize)]
struct Listing {
    nftables: Vec<Map<String, Value>>,
}

/// The objects of the tables by their names, those with rules with their rules.
pub(super) type Objects = BTreeMap<String, Vec<Value>>;

/// Reads what nft lists of the tables.
///
/// # Errors
/// When it is no list of rules.
pub fn decode(json: &[u8], config: &FilterConfig) -> Result<PacketFilter, serde_json::Error> {
    let mut found = BTreeMap::new();
    for listing in serde_json::Deserializer::from_slice(json).into_iter::<Listing>() {
        for object in listing?.nftables {
            insert(&mut found, object);
        }
    }
    let firewalls = firewalls(&found);
    Ok(PacketFilter {
        is_in_place: found == expected(&firewalls, config),
        firewalls,
    })
}

/// Inserts an object that nft lists, if it is of a table of ours. Numbers, which differ each time, are
/// left out, and sets have the order of their elements.
fn insert(found: &mut Objects, object: Map<String, Value>) {
    for (kind, mut value) in object {
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let (family, name) = (text(&value, "family"), text(&value, "name"));
        let table = match kind.as_str() {
            "table" => name.clone(),
            _ => text(&value, "table"),
        };
        if table != TABLE || !FAMILIES.contains(&family.as_str()) {
            continue;
        }
        match kind.as_str() {
            "rule" => {
                let chain = text(&value, "chain");
                let rules = found.entry(format!("{family} chain {chain}")).or_default();
                rules.push(normal(value["expr"].take()));
            }
            "chain" => {
                let hook = ["type", "hook", "prio", "policy"].map(|key| value[key].take());
                let rules = found.entry(format!("{family} chain {name}")).or_default();
                rules.insert(0, Value::Array(hook.into()));
            }
            other => {
                // Flags and sizes are told in other ways by other versions.
                let of = found.entry(format!("{family} {other} {name}")).or_default();
                of.push(value["type"].take());
            }
        }
    }
}

/// The filters of the firewalls' chains. One that somebody changed permits nothing until it is set
/// again.
fn firewalls(found: &Objects) -> BTreeMap<PortName, VxlanFilter> {
    let chains = found.iter().filter_map(|(name, rules)| {
        let port = name
            .strip_prefix("inet chain ")?
            .strip_prefix(CHAIN_PREFIX)?;
        Some((PortName::new(port).ok()?, rules))
    });
    chains
        .map(|(port, rules)| {
            let filter = filter(rules).filter(|filter| firewall(filter) == *rules);
            (port, filter.unwrap_or_default())
        })
        .collect()
}

/// The filter that a chain has if it is one of ours.
fn filter(rules: &[Value]) -> Option<VxlanFilter> {
    let mut vnis = BTreeSet::new();
    let mut sources = BTreeSet::new();
    let matches = rules.iter().filter_map(Value::as_array).flatten();
    for found in matches.filter_map(|statement| statement.get("match")) {
        let right = elements(&found["right"]);
        let left = &found["left"]["payload"];
        if *left == raw_word(96)["payload"] {
            for word in right {
                vnis.insert(Vni::new(u32::try_from(word.as_u64()? >> 8).ok()?).ok()?);
            }
        } else if left["field"] == "saddr" {
            let is_address = |element: &Value| !LINK_LOCAL.map(address).contains(element);
            for element in right.into_iter().filter(is_address) {
                sources.insert(prefix(&element)?);
            }
        }
    }
    VxlanFilter::new(vnis, sources).ok()
}

fn elements(right: &Value) -> Vec<Value> {
    match right.get("set").and_then(Value::as_array) {
        Some(parts) => parts.clone(),
        None => vec![right.clone()],
    }
}
