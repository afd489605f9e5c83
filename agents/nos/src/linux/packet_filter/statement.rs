//! Parts of rules as nft lists them in JSON.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::limits::Rate;
use crate::linux::VXLAN_PORT;

/// A value with sorted sets, and a set of one element as that element.
pub(super) fn normal(value: Value) -> Value {
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

/// An address or prefix as nft lists it.
pub(super) fn address(text: &str) -> Value {
    match text.parse::<IpNet>() {
        Ok(prefix) if prefix.prefix_len() < prefix.max_prefix_len() => {
            json!({"prefix": {"addr": prefix.addr(), "len": prefix.prefix_len()}})
        }
        Ok(prefix) => json!(prefix.addr()),
        Err(_) => json!(text),
    }
}

/// The prefix that an element of a set is.
pub(super) fn prefix(element: &Value) -> Option<IpNet> {
    let Some(of) = element.get("prefix") else {
        let address: IpAddr = element.as_str()?.parse().ok()?;
        return Some(address.into());
    };
    let address = of["addr"].as_str()?.parse().ok()?;
    let length = u8::try_from(of["len"].as_u64()?).ok()?;
    IpNet::new(address, length).ok()
}

pub(super) fn addresses(of: &[IpNet]) -> Vec<Value> {
    of.iter()
        .map(|prefix| address(&prefix.to_string()))
        .collect()
}

pub(super) fn meta(key: &str) -> Value {
    json!({"meta": {"key": key}})
}

pub(super) fn payload(protocol: &str, field: &str) -> Value {
    json!({"payload": {"protocol": protocol, "field": field}})
}

pub(super) fn concat(parts: &[Value]) -> Value {
    json!({"concat": parts})
}

pub(super) fn range(from: &str, to: &str) -> Value {
    json!({"range": [from, to]})
}

pub(super) fn of_set(parts: impl IntoIterator<Item = Value>) -> Value {
    let parts: Vec<Value> = parts.into_iter().collect();
    normal(json!({"set": parts}))
}

pub(super) fn matches(op: &str, left: Value, right: Value) -> Value {
    json!({"match": {"op": op, "left": left, "right": right}})
}

pub(super) fn is(left: Value, right: Value) -> Value {
    matches("==", left, right)
}

pub(super) fn iifname(pattern: &str) -> Value {
    is(meta("iifname"), json!(pattern))
}

/// A verdict without a target.
pub(super) fn verdict(of: &str) -> Value {
    json!({of: null})
}

pub(super) fn jump(target: &str) -> Value {
    json!({"jump": {"target": target}})
}

pub(super) fn goto(target: &str) -> Value {
    json!({"goto": {"target": target}})
}

pub(super) fn set_mark(value: Value) -> Value {
    json!({"mangle": {"key": meta("mark"), "value": value}})
}

/// A word behind the UDP header, by its bits from there.
pub(super) fn raw_word(offset: u32) -> Value {
    json!({"payload": {"base": "th", "offset": offset, "len": 32}})
}

pub(super) fn vxlan() -> Value {
    is(payload("udp", "dport"), json!(VXLAN_PORT))
}

/// Neighbour discovery: router solicitation to redirect.
pub(super) fn discovery() -> Value {
    let kinds = range("nd-router-solicit", "nd-redirect");
    is(payload("icmpv6", "type"), kinds)
}

/// Any packet of a TCP connection but the first.
pub(super) fn answer() -> Value {
    let flags = json!({"&": [payload("tcp", "flags"), ["syn", "ack"]]});
    matches("!=", flags, json!("syn"))
}

/// The first packet of a TCP connection.
pub(super) fn first() -> Value {
    let flags = json!({"&": [payload("tcp", "flags"), ["syn", "ack"]]});
    is(flags, json!("syn"))
}

/// A frame to a group by its mask.
pub(super) fn to_group(mask: &str, group: &str) -> Value {
    let to = json!({"&": [payload("ether", "daddr"), mask]});
    is(to, json!(group))
}

/// Drops frames whose `kind` is a tag, and whose first tag has VLAN 0 (`==`) or another (`!=`).
pub(super) fn tagged(kind: Value, op: &str) -> [Value; 3] {
    let tags = of_set([json!("8021ad"), json!("8021q"), json!(0x9100)]);
    let outer = json!({"&": [{"payload": {"base": "ll", "offset": 112, "len": 16}}, 0xfff]});
    [
        is(kind, tags),
        matches(op, outer, json!(0)),
        verdict("drop"),
    ]
}

/// Above a rate that each key of a set has.
pub(super) fn over(set: &str, key: Value, rate: Rate) -> Value {
    let Rate { second, burst } = rate;
    let limit = json!({"rate": second, "burst": burst, "per": "second", "inv": true});
    let (set, stmt) = (format!("@{set}"), json!([{"limit": limit}]));
    json!({"set": {"op": "update", "elem": key, "set": set, "stmt": stmt}})
}

/// Adds a key to a set.
pub(super) fn add(key: Value, set: &str) -> Value {
    json!({"set": {"op": "add", "elem": key, "set": format!("@{set}")}})
}
