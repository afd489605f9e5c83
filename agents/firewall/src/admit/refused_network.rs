//! Networks whose objects are wrong. One that was only left out would be an open one: its interfaces
//! would be like those of no network, which may have nearly every source.

use ipnet::IpNet;
use proto_firewall::Violation;
use proto_firewall::parts::{NAME_LEN_MAX, is_name};
use serde_norway::Value;

use super::Problem;
use super::firewall::{interfaces_of_vrf, network_kind};
use super::names::interface;
use crate::config::FirewallSpec;
use crate::rule::{Network, NetworkKind};

/// The first network whose interfaces cannot be told, because its object is wrong. With one no object is
/// used, as with a field that is not known: without its networks no rule means what was written.
#[must_use]
pub fn unreadable_network(spec: &FirewallSpec) -> Option<Problem> {
    let is_unreadable = |value: &Value| {
        // No rule is for the underlay, whose interfaces have names of their own.
        kind(value) != NetworkKind::Underlay && interfaces(value).is_none()
    };
    let index = spec.networks.iter().position(is_unreadable)?;
    let problem =
        "the interfaces of the network cannot be read, so that none of the objects is used";
    let remedy = "write `vrf` as a number, or `interfaces` as a list of names";
    let violation = Violation::new("vrf", problem, remedy);
    Some(Problem::new(
        format!("firewall networks[{index}]"),
        violation,
    ))
}

/// The network of an object that was refused, with the fewest rights that it can have: nothing passes its
/// interfaces, and its prefixes are nobody else's. One that is outside stays outside, with neither NAT nor
/// machines of its own: its interfaces may be the way to repair the mistake, and the checks of those
/// networks hold for it. `None` if other networks have its interfaces.
pub(super) fn refused_network(value: &Value, index: usize, others: &[Network]) -> Option<Network> {
    let mut interfaces = interfaces(value)?;
    interfaces.retain(|own| !others.iter().any(|other| other.interfaces.contains(own)));
    if interfaces.is_empty() {
        return None;
    }
    let is_free =
        |id: &&str| is_name(id, NAME_LEN_MAX) && others.iter().all(|other| other.id != **id);
    let id = value.get("networkID").and_then(Value::as_str);
    let kind = kind(value);
    Some(Network {
        // No object can have this name.
        id: id
            .filter(is_free)
            .map_or_else(|| format!("refused/{index}"), str::to_owned),
        kind,
        interfaces,
        prefixes: prefixes(value),
        addresses: (kind == NetworkKind::External).then(Vec::new),
        nat_addresses: Vec::new(),
        masquerade: false,
    })
}

/// The kind that a network has although its object is wrong.
fn kind(value: &Value) -> NetworkKind {
    let text = value.get("networkType").and_then(Value::as_str);
    match text.map(network_kind) {
        Some(Ok(NetworkKind::External)) => NetworkKind::External,
        Some(Ok(NetworkKind::Underlay)) => NetworkKind::Underlay,
        _ => NetworkKind::Closed,
    }
}

/// The interfaces of an object, wrong or not. `None` if they cannot be told. Every object that is right has
/// them.
fn interfaces(value: &Value) -> Option<Vec<String>> {
    let named = match value.get("interfaces") {
        None => None,
        Some(list) => {
            let names = list.as_sequence()?.iter();
            let names = names.map(|name| interface("interfaces", name.as_str()?).ok());
            Some(names.collect::<Option<Vec<String>>>()?)
        }
    };
    match (named, value.get("vrf")) {
        (Some(named), _) if !named.is_empty() => Some(named),
        (_, Some(vrf)) => {
            let in_quotes = || vrf.as_str().and_then(|text| text.parse().ok());
            let number: u32 = match vrf.as_u64() {
                Some(number) => number.try_into().ok()?,
                None => in_quotes()?,
            };
            Some(interfaces_of_vrf(number).to_vec())
        }
        // An empty list: its source knows that there are none.
        (named, None) => named,
    }
}

/// The prefixes that can be read, without bits after their lengths.
fn prefixes(value: &Value) -> Vec<IpNet> {
    let list = value.get("prefixes").and_then(Value::as_sequence);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    let prefixes = texts.filter_map(|text| text.parse::<IpNet>().ok());
    prefixes.map(|prefix| prefix.trunc()).collect()
}
