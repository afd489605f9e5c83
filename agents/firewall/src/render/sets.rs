//! Many rules as sets: one line for each shape of keys, and one element for each key.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::lines::{comment, family_match, log};
use crate::compile::entries::for_each_entry;
use crate::compile::layers::Layer;
use crate::compile::shape::{Shape, TransportShape};
use crate::rule::{Action, NameSelector, Rule, prefixes};

/// Keys with the name of the rule that each belongs to.
type Keys = BTreeMap<Vec<u8>, String>;

/// The lines of a layer, without its direction.
pub(super) fn layer_sets(layer: &Layer<'_>) -> Vec<String> {
    let mut groups: BTreeMap<(Option<&NameSelector>, Shape), Keys> = BTreeMap::new();
    for rule in &layer.rules {
        let comment = comment(rule);
        if rule.names.is_empty() {
            for_each_entry(rule, |shape, key| {
                let keys = groups.entry((None, shape)).or_default();
                keys.entry(key).or_insert_with(|| comment.clone());
            });
            continue;
        }
        // The destination is in the set of the name, and in no key.
        let everywhere = Rule {
            destinations: prefixes::any(),
            ..(*rule).clone()
        };
        for_each_entry(&everywhere, |shape, key| {
            for name in &rule.names {
                let keys = groups.entry((Some(name), shape)).or_default();
                keys.entry(key.clone()).or_insert_with(|| comment.clone());
            }
        });
    }
    let is_dropped = layer.rules.iter().any(|rule| rule.action == Action::Drop);
    let decision = match layer.action {
        Action::Log => log(is_dropped),
        action => format!("counter {}", action.name()),
    };
    let line = |((name, shape), keys): (&(Option<&NameSelector>, Shape), &Keys)| {
        let named = name.map(|name| named(name, shape.is_ipv4));
        let family = family_match(shape.is_ipv4);
        let keys = members(shape, keys);
        format!("{family}{}{keys}{decision}", named.unwrap_or_default())
    };
    groups.iter().map(line).collect()
}

/// The match of a destination that a name was resolved to.
pub(super) fn named(name: &NameSelector, is_ipv4: bool) -> String {
    let kind = if is_ipv4 { "ip" } else { "ip6" };
    format!("{kind} daddr @{} ", name.set(is_ipv4))
}

/// The match of the keys of a shape.
fn members(shape: &Shape, keys: &Keys) -> String {
    if shape.is_empty() {
        // Every packet of the family.
        return String::new();
    }
    let elements: Vec<String> = keys
        .iter()
        .map(|(key, rule)| {
            let values = values(shape, key).join(" . ");
            format!("\n      {values} counter comment \"{rule}\"")
        })
        .collect();
    let fields = fields(shape).join(" . ");
    format!("{fields} {{{}\n    }} ", elements.join(","))
}

/// The fields of a packet that make up a key.
fn fields(shape: &Shape) -> Vec<String> {
    let mut fields = Vec::new();
    for (field, len) in [
        ("saddr", shape.source_len),
        ("daddr", shape.destination_len),
    ] {
        if len > 0 {
            fields.push(address_field(shape.is_ipv4, field, len));
        }
    }
    match shape.transport {
        TransportShape::Any => {}
        TransportShape::Protocol => fields.push("meta l4proto".to_owned()),
        TransportShape::Port(bits) => {
            fields.push("meta l4proto".to_owned());
            let mask = !u16::MAX.checked_shr(bits.into()).unwrap_or(0);
            fields.push(match bits {
                16.. => "th dport".to_owned(),
                _ => format!("th dport & {mask}"),
            });
        }
        // nft adds the protocol.
        TransportShape::IcmpType if shape.is_ipv4 => fields.push("icmp type".to_owned()),
        TransportShape::IcmpType => fields.push("icmpv6 type".to_owned()),
    }
    fields
}

pub(super) fn address_field(is_ipv4: bool, field: &str, len: u8) -> String {
    let mask = match is_ipv4 {
        true => Ipv4Net::new(Ipv4Addr::UNSPECIFIED, len).map(|net| IpAddr::V4(net.netmask())),
        false => Ipv6Net::new(Ipv6Addr::UNSPECIFIED, len).map(|net| IpAddr::V6(net.netmask())),
    };
    let kind = if is_ipv4 { "ip" } else { "ip6" };
    let whole = if is_ipv4 { 32 } else { 128 };
    match mask {
        Ok(mask) if len < whole => format!("{kind} {field} & {mask}"),
        _ => format!("{kind} {field}"),
    }
}

/// The values of a key, in the order of the fields. Numbers, because names of protocols come from a
/// file that an image may not have.
fn values(shape: &Shape, key: &[u8]) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = key;
    let mut take = |length: usize| -> &[u8] {
        let (taken, left) = rest.split_at(length.min(rest.len()));
        rest = left;
        taken
    };
    for len in [shape.source_len, shape.destination_len] {
        if len > 0 {
            values.push(address(take(if shape.is_ipv4 { 4 } else { 16 })));
        }
    }
    // Fields of less than four bytes are padded.
    let number = |bytes: &[u8], length| {
        let own = bytes.iter().take(length);
        own.fold(0_u32, |all, byte| all << 8 | u32::from(*byte))
            .to_string()
    };
    match shape.transport {
        TransportShape::Any => {}
        TransportShape::Protocol => values.push(number(take(4), 1)),
        TransportShape::Port(_) => {
            values.push(number(take(4), 1));
            values.push(number(take(4), 2));
        }
        TransportShape::IcmpType => {
            take(4);
            values.push(number(take(4), 1));
        }
    }
    values
}

fn address(octets: &[u8]) -> String {
    let ipv4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    let ipv6 = || <[u8; 16]>::try_from(octets).map(IpAddr::from);
    ipv4.or_else(|_| ipv6())
        .map(|address| address.to_string())
        .unwrap_or_default()
}
