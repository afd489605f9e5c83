//! The rules as nft lists them in JSON.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::nft::NftError;
use super::{
    ASKING_BURST, ASKING_RATE, CHAIN_PREFIX, LINK_LOCAL, MARKS, NEIGHBOUR_BURST, NEIGHBOUR_RATE,
    TABLE, VXLAN_FLAGS, chain_name, vxlan_word,
};
use crate::linux::VXLAN_PORT;
use crate::linux::names::BRIDGE_PREFIX;
use crate::model::{PacketFilter, PortName, VxlanFilter};
use crate::vni::Vni;

/// Kinds of devices that are no ports.
const INNER: [&str; 2] = ["bridge", "vrf"];

#[derive(Deserialize)]
struct Listing {
    nftables: Vec<Map<String, Value>>,
}

/// Reads what nft lists of the tables.
///
/// # Errors
/// When it is no list of rules.
pub fn decode(json: &[u8]) -> Result<PacketFilter, serde_json::Error> {
    let mut found = BTreeMap::new();
    for listing in serde_json::Deserializer::from_slice(json).into_iter::<Listing>() {
        for object in listing?.nftables {
            insert(&mut found, object);
        }
    }
    let firewalls = firewalls(&found);
    Ok(PacketFilter {
        is_in_place: found == expected(&firewalls),
        firewalls,
    })
}

pub(super) fn read(json: &[u8]) -> Result<PacketFilter, NftError> {
    decode(json).map_err(NftError::Output)
}

/// The objects of the tables by their names, those with rules with their rules.
type Objects = BTreeMap<String, Vec<Value>>;

/// Inserts an object that nft lists. Numbers, which differ each time, are left out, and sets have
/// the order of their elements.
fn insert(found: &mut Objects, object: Map<String, Value>) {
    for (kind, mut value) in object {
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let (family, name) = (text(&value, "family"), text(&value, "name"));
        match kind.as_str() {
            "metainfo" => {}
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

/// A value with sorted sets, and a set of one element as that element.
fn normal(value: Value) -> Value {
    match value {
        Value::Array(parts) => parts.into_iter().map(normal).collect(),
        Value::Object(fields) => {
            let is_set = fields.len() == 1;
            let mut fields: Map<String, Value> = fields
                .into_iter()
                .map(|(key, value)| (key, normal(value)))
                .collect();
            match fields.get_mut("set") {
                Some(Value::Array(parts)) if is_set && parts.len() == 1 => parts.remove(0),
                Some(Value::Array(parts)) if is_set => {
                    parts.sort_by_cached_key(Value::to_string);
                    Value::Object(fields)
                }
                _ => Value::Object(fields),
            }
        }
        other => other,
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
            let filter = filter(rules).filter(|filter| chain(filter) == *rules);
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

fn prefix(element: &Value) -> Option<IpNet> {
    let Some(of) = element.get("prefix") else {
        let address: std::net::IpAddr = element.as_str()?.parse().ok()?;
        return Some(address.into());
    };
    let address = of["addr"].as_str()?.parse().ok()?;
    let length = u8::try_from(of["len"].as_u64()?).ok()?;
    IpNet::new(address, length).ok()
}

/// An address or prefix as nft lists it.
fn address(text: &str) -> Value {
    match text.parse::<IpNet>() {
        Ok(prefix) if prefix.prefix_len() < prefix.max_prefix_len() => {
            json!({"prefix": {"addr": prefix.addr(), "len": prefix.prefix_len()}})
        }
        Ok(prefix) => json!(prefix.addr()),
        Err(_) => json!(text),
    }
}

/// The objects of unchanged tables.
fn expected(firewalls: &BTreeMap<PortName, VxlanFilter>) -> Objects {
    let mut out = Objects::new();
    for family in super::FAMILIES {
        out.insert(format!("{family} table {TABLE}"), vec![Value::Null]);
        out.insert(format!("{family} set senders"), vec![json!("ifname")]);
    }
    for (name, of) in [
        ("asked4", &["mark", "iface_index", "ipv4_addr"][..]),
        ("asked6", &["mark", "iface_index", "ipv6_addr"]),
        ("askers", &["mark", "iface_index"]),
    ] {
        out.insert(format!("inet set {name}"), vec![json!(of)]);
    }
    for (name, rules) in chains_of_inet().into_iter().chain(chains_of_neighbours()) {
        out.insert(name.to_owned(), rules);
    }
    let jumps = firewalls.keys().map(|port| {
        let from = matches("==", meta("iifname"), json!(port.as_ref() as &str));
        json!([from, {"jump": {"target": chain_name(port)}}])
    });
    let jumps = std::iter::once(no_hook()).chain(jumps);
    out.insert("inet chain firewalls".to_owned(), jumps.collect());
    for (port, filter) in firewalls {
        out.insert(format!("inet chain {}", chain_name(port)), chain(filter));
    }
    out
}

fn chains_of_inet() -> [(&'static str, Vec<Value>); 3] {
    let inner = |op| matches(op, meta("iifkind"), of_set(INNER.map(Value::from)));
    let prerouting = vec![
        hook("prerouting", -350),
        json!([{"jump": {"target": "firewalls"}}]),
        json!([inner("!="), mark()]),
        json!([inner("!="), discovery(), slow(), {"drop": null}]),
    ];
    let input = vec![
        hook("input", -350),
        json!([inner("=="), vxlan(), {"drop": null}]),
    ];
    [
        ("inet chain prerouting", prerouting),
        ("inet chain input", input),
        ("inet chain forward", forward()),
    ]
}

/// The packets to hosts of segments.
fn forward() -> Vec<Value> {
    let asker = [meta("mark"), meta("iif")];
    let address = |version: &str| {
        let address = json!({"payload": {"protocol": version, "field": "daddr"}});
        let parts: Vec<Value> = asker.iter().cloned().chain([address]).collect();
        json!({"concat": parts})
    };
    let known = |version: &str, set: &str| json!([matches("==", address(version), json!(set)), {"accept": null}]);
    let add = |version: &str, set: &str| json!([{"set": {"op": "add", "elem": address(version), "set": set}}]);
    let outside = matches("!=", meta("oifname"), json!(format!("{BRIDGE_PREFIX}*")));
    let asker = json!({"concat": asker});
    vec![
        hook("forward", -350),
        json!([outside, {"accept": null}]),
        known("ip", "@asked4"),
        known("ip6", "@asked6"),
        json!([over(ASKING_RATE, ASKING_BURST, asker, "@askers"), {"drop": null}]),
        add("ip", "@asked4"),
        add("ip6", "@asked6"),
    ]
}

/// Marks a packet with its port.
fn mark() -> Value {
    let of = json!({"mod": MARKS, "seed": 1, "offset": 1, "expr": meta("iifname")});
    json!({"mangle": {"key": meta("mark"), "value": {"jhash": of}}})
}

fn chains_of_neighbours() -> [(&'static str, Vec<Value>); 2] {
    let kind = |of: &str| matches("==", meta("iifkind"), json!(of));
    let protocol = |of: Value| matches("==", meta("protocol"), of);
    let tagged = of_set(["8021ad", "8021q"].map(Value::from));
    let outer = json!({"&": [{"payload": {"base": "ll", "offset": 112, "len": 16}}, 0xfff]});
    let bridge = vec![
        hook("prerouting", -300),
        json!([kind("vxlan"), {"return": null}]),
        json!([mark()]),
        json!([protocol(tagged), matches("==", outer, json!(0)), {"drop": null}]),
        json!([protocol(json!("arp")), slow(), {"drop": null}]),
        json!([discovery(), slow(), {"drop": null}]),
    ];
    let arp = vec![
        hook("input", -300),
        json!([kind("bridge"), {"return": null}]),
        json!([slow(), {"drop": null}]),
    ];
    [
        ("bridge chain prerouting", bridge),
        ("arp chain input", arp),
    ]
}

/// The chain of a firewall, as `rules` writes it.
fn chain(filter: &VxlanFilter) -> Vec<Value> {
    let (v4, v6): (Vec<IpNet>, Vec<IpNet>) = filter
        .sources()
        .iter()
        .partition(|source| matches!(source, IpNet::V4(_)));
    let texts = |of: &[IpNet]| {
        of.iter()
            .map(|s| address(&s.to_string()))
            .collect::<Vec<_>>()
    };
    let saddr = |protocol: &str| json!({"payload": {"protocol": protocol, "field": "saddr"}});
    let version = |of: &str| matches("==", meta("nfproto"), json!(of));
    let fragment = json!({"&": [{"payload": {"protocol": "ip", "field": "frag-off"}}, 0x3fff]});
    let from_v4 = match v4.is_empty() {
        true => version("ipv4"),
        false => matches("!=", saddr("ip"), of_set(texts(&v4))),
    };
    let from_v6 = match v6.is_empty() {
        true => version("ipv6"),
        false => matches("!=", saddr("ip6"), of_set(texts(&v6))),
    };
    let mut all = texts(&v6);
    all.extend(LINK_LOCAL.map(address));
    let mut out = vec![
        no_hook(),
        json!([matches("!=", fragment, json!(0)), {"drop": null}]),
        json!([matches("==", json!({"exthdr": {"name": "frag"}}), json!(true)), {"drop": null}]),
        json!([from_v4, {"drop": null}]),
        json!([from_v6, vxlan(), {"drop": null}]),
        json!([matches("!=", saddr("ip6"), of_set(all)), {"drop": null}]),
    ];
    if !filter.vnis().is_empty() {
        let words = filter.vnis().iter().map(|vni| json!(vxlan_word(*vni)));
        let flags = matches("==", raw_word(64), json!(VXLAN_FLAGS));
        let network = matches("==", raw_word(96), of_set(words));
        out.push(json!([vxlan(), flags, network, {"return": null}]));
    }
    out.push(json!([vxlan(), {"drop": null}]));
    out
}

fn hook(hook: &str, priority: i32) -> Value {
    json!(["filter", hook, priority, "accept"])
}

fn no_hook() -> Value {
    json!([null, null, null, null])
}

fn meta(key: &str) -> Value {
    json!({"meta": {"key": key}})
}

fn matches(op: &str, left: Value, right: Value) -> Value {
    json!({"match": {"op": op, "left": left, "right": right}})
}

fn of_set(parts: impl IntoIterator<Item = Value>) -> Value {
    let parts: Vec<Value> = parts.into_iter().collect();
    normal(json!({"set": parts}))
}

fn raw_word(offset: u32) -> Value {
    json!({"payload": {"base": "th", "offset": offset, "len": 32}})
}

fn vxlan() -> Value {
    let port = json!({"payload": {"protocol": "udp", "field": "dport"}});
    matches("==", port, json!(VXLAN_PORT))
}

/// Neighbour discovery: router solicitation to redirect.
fn discovery() -> Value {
    let kind = json!({"payload": {"protocol": "icmpv6", "field": "type"}});
    let range = json!({"range": ["nd-router-solicit", "nd-redirect"]});
    matches("==", kind, range)
}

/// Above the rate of a port.
fn slow() -> Value {
    over(NEIGHBOUR_RATE, NEIGHBOUR_BURST, meta("iifname"), "@senders")
}

/// Above a rate, packets a second, that each key of a set has.
fn over(rate: u32, burst: u32, key: Value, set: &str) -> Value {
    let limit = json!({"rate": rate, "burst": burst, "per": "second", "inv": true});
    json!({"set": {"op": "update", "elem": key, "set": set, "stmt": [{"limit": limit}]}})
}
