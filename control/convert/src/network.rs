//! Networks and addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_gate::refusal::invalid;
use control_state::{self as state, Family, Tables};
use ipnet::IpNet;
use proto_public::api::v2;
use proto_types::{NetworkId, ProjectId};
use tonic::Status;

use super::enums::{family, from_network_family, ip_type, nat_type, network_type};
use super::{has_labels, is, is_choice, is_opt, meta, parse_all};

/// Usage of networks, counted once for all networks of an answer.
#[derive(Debug)]
pub struct Fullness<'a> {
    ips: BTreeMap<&'a NetworkId, [u64; 2]>,
    prefixes: BTreeMap<&'a NetworkId, [u64; 2]>,
}

/// A network of a list, with its usage at the time of the read.
#[derive(Debug)]
pub struct NetworkRow {
    network: Arc<state::Network>,
    consumption: Option<v2::NetworkConsumption>,
}

impl NetworkRow {
    /// A network without its usage.
    pub fn untold(network: &Arc<state::Network>) -> Self {
        Self {
            network: Arc::clone(network),
            consumption: None,
        }
    }

    /// The network for the wire.
    pub fn network(&self) -> v2::Network {
        v2::Network {
            consumption: self.consumption,
            ..network(&self.network, None)
        }
    }
}

const fn slot(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

impl<'a> Fullness<'a> {
    /// Counts addresses and child prefixes of all networks.
    pub fn of(tables: &'a Tables) -> Self {
        let mut ips: BTreeMap<&NetworkId, [u64; 2]> = BTreeMap::new();
        for ip in tables.all::<state::Ip>() {
            ips.entry(&ip.network).or_default()[slot(Family::of(ip.ip))] += 1;
        }
        let mut prefixes: BTreeMap<&NetworkId, [u64; 2]> = BTreeMap::new();
        for child in tables.all::<state::Network>() {
            let Some(parent) = &child.parent else {
                continue;
            };
            for prefix in &child.prefixes {
                prefixes.entry(parent).or_default()[slot(Family::of_net(prefix))] += 1;
            }
        }
        Self { ips, prefixes }
    }

    /// Counts addresses and child prefixes of one network.
    pub fn of_one(tables: &'a Tables, network: &'a state::Network) -> Self {
        let mut ips = [0; 2];
        for ip in state::query::network_ips(tables, &network.id) {
            ips[slot(Family::of(ip.ip))] += 1;
        }
        let mut prefixes = [0; 2];
        for child in state::query::child_networks(tables, &network.id) {
            for prefix in &child.prefixes {
                prefixes[slot(Family::of_net(prefix))] += 1;
            }
        }
        Self {
            ips: BTreeMap::from([(&network.id, ips)]),
            prefixes: BTreeMap::from([(&network.id, prefixes)]),
        }
    }

    /// A network of a list, with its usage.
    pub fn row(&self, network: &Arc<state::Network>) -> NetworkRow {
        NetworkRow {
            network: Arc::clone(network),
            consumption: Some(self.network(network)),
        }
    }

    fn network(&self, network: &state::Network) -> v2::NetworkConsumption {
        let usage = |family| {
            network
                .has_family(family)
                .then(|| self.usage(network, family))
        };
        v2::NetworkConsumption {
            ipv4: usage(Family::V4),
            ipv6: usage(Family::V6),
        }
    }

    fn usage(&self, network: &state::Network, family: Family) -> v2::NetworkUsage {
        let own = || {
            network
                .prefixes
                .iter()
                .filter(|net| Family::of_net(net) == family)
        };
        let children = network.default_child_length.get(family);
        let total = |sum: u64, net: &IpNet| sum.saturating_add(hosts(net));
        let child_count = |sum: u64, net: &IpNet| {
            let length = children.unwrap_or_else(|| net.max_prefix_len());
            sum.saturating_add(power(length.saturating_sub(net.prefix_len())))
        };
        let count = |map: &BTreeMap<&NetworkId, [u64; 2]>| {
            map.get(&network.id)
                .map_or(0, |counts| counts[slot(family)])
        };
        v2::NetworkUsage {
            // Clients divide by it.
            available_ips: own().fold(0, total).max(1),
            used_ips: count(&self.ips),
            available_prefixes: if children.is_some() {
                own().fold(0, child_count)
            } else {
                0
            },
            used_prefixes: count(&self.prefixes),
        }
    }
}

/// Number of host addresses in a prefix.
fn hosts(net: &IpNet) -> u64 {
    let all = power(net.max_prefix_len() - net.prefix_len());
    if net.addr().is_ipv4() && all > 2 {
        all - 2
    } else {
        all
    }
}

fn power(bits: u8) -> u64 {
    1_u64.checked_shl(bits.into()).unwrap_or(u64::MAX)
}

/// A network for the wire. `None` as `fullness` leaves the usage out, as for a base network that the
/// project only uses.
pub fn network(network: &state::Network, fullness: Option<&Fullness<'_>>) -> v2::Network {
    let texts = |nets: &[IpNet]| nets.iter().map(ToString::to_string).collect();
    v2::Network {
        id: network.id.to_string(),
        meta: meta(&network.meta),
        name: network.name.clone(),
        description: network.description.clone(),
        partition: network.partition.as_ref().map(ToString::to_string),
        project: network.project.map(|project| project.to_string()),
        namespace: network.namespace.map(|project| project.to_string()),
        prefixes: texts(&network.prefixes),
        destination_prefixes: texts(&network.destination_prefixes),
        default_child_prefix_length: length(network.default_child_length),
        min_child_prefix_length: length(network.min_child_length),
        r#type: network_type(network.kind),
        nat_type: nat_type(network.nat),
        vrf: network.vrf,
        parent_network: network.parent.as_ref().map(ToString::to_string),
        additional_announcable_cidrs: texts(&network.additional_announcable_cidrs),
        consumption: fullness.map(|fullness| fullness.network(network)),
    }
}

fn length(length: state::ChildLength) -> Option<v2::ChildPrefixLength> {
    let (ipv4, ipv6) = (length.v4.map(u32::from), length.v6.map(u32::from));
    (ipv4.is_some() || ipv6.is_some()).then_some(v2::ChildPrefixLength { ipv4, ipv6 })
}

/// A prefix length from the wire.
///
/// # Errors
/// `invalid_argument` if the number is not a prefix length.
pub fn from_length(
    field: &str,
    length: Option<v2::ChildPrefixLength>,
) -> Result<state::ChildLength, Status> {
    let small = |number: Option<u32>| {
        number
            .map(u8::try_from)
            .transpose()
            .map_err(|_| invalid(field, "is no prefix length"))
    };
    let length = length.unwrap_or_default();
    Ok(state::ChildLength {
        v4: small(length.ipv4)?,
        v6: small(length.ipv6)?,
    })
}

/// A list of prefixes in an update. `None` for an empty list, which on the wire cannot be told from an
/// absent one. An empty list for the unspecified address alone (`0.0.0.0/32` or `::/128`), which is
/// not a valid destination.
///
/// # Errors
/// `invalid_argument` for a malformed prefix, and for the unspecified address among others.
pub fn from_prefixes(field: &str, texts: &[String]) -> Result<Option<Vec<IpNet>>, Status> {
    let prefixes: Vec<IpNet> = parse_all(field, texts)?;
    match prefixes.as_slice() {
        [only] if is_nothing(only) => Ok(Some(Vec::new())),
        _ => specified(field, prefixes).map(|prefixes| (!prefixes.is_empty()).then_some(prefixes)),
    }
}

/// The prefixes of a network's own addresses.
///
/// # Errors
/// `invalid_argument` for a malformed prefix and for the unspecified address.
pub fn own_prefixes(field: &str, texts: &[String]) -> Result<Vec<IpNet>, Status> {
    specified(field, parse_all(field, texts)?)
}

fn specified(field: &str, prefixes: Vec<IpNet>) -> Result<Vec<IpNet>, Status> {
    match prefixes.iter().find(|prefix| is_nothing(prefix)) {
        Some(nothing) => Err(invalid(field, format!("must not hold {nothing}"))),
        None => Ok(prefixes),
    }
}

/// `true` for the unspecified address as a prefix.
fn is_nothing(prefix: &IpNet) -> bool {
    prefix.addr().is_unspecified() && prefix.prefix_len() == prefix.max_prefix_len()
}

/// `true` if the query matches this network.
pub fn network_matches(network: &state::Network, query: Option<&v2::NetworkQuery>) -> bool {
    let Some(query) = query else { return true };
    let has_all = |wanted: &[String], nets: &[IpNet]| {
        wanted
            .iter()
            .all(|one| nets.iter().any(|net| net.to_string() == *one))
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    is(query.id.as_ref(), network.id.as_str())
        && is(query.name.as_ref(), &text(&network.name))
        && is(query.description.as_ref(), &text(&network.description))
        && is_opt(query.partition.as_ref(), network.partition.as_ref())
        && is_opt(query.project.as_ref(), network.project.as_ref())
        && is_opt(query.namespace.as_ref(), network.namespace.as_ref())
        && has_all(&query.prefixes, &network.prefixes)
        && has_all(&query.destination_prefixes, &network.destination_prefixes)
        && query.vrf.is_none_or(|wanted| network.vrf == Some(wanted))
        && is_opt(query.parent_network.as_ref(), network.parent.as_ref())
        && query
            .address_family
            .is_none_or(|wanted| has_families(network, wanted))
        && is_choice(query.r#type, network_type(network.kind))
        && is_choice(query.nat_type, nat_type(network.nat))
        && has_labels(&network.meta.labels, query.labels.as_ref())
}

/// `true` if the network has the wanted address families. A dual-stack network matches each family.
fn has_families(network: &state::Network, wanted: i32) -> bool {
    let has = |family| network.has_family(family);
    match from_network_family(wanted) {
        Some(state::NetworkFamily::V4) => has(Family::V4),
        Some(state::NetworkFamily::V6) => has(Family::V6),
        Some(state::NetworkFamily::Dual) => has(Family::V4) && has(Family::V6),
        None => true,
    }
}

/// An address for the wire.
pub fn ip(ip: &state::Ip) -> v2::Ip {
    let mut head = meta(&ip.meta);
    if let (Some(machine), Some(labels)) = (
        ip.shown_machine(),
        head.as_mut().and_then(|meta| meta.labels.as_mut()),
    ) {
        labels
            .labels
            .insert(state::label::MACHINE_ID.to_owned(), machine.to_string());
    }
    if let (Some(claim), Some(labels)) = (
        ip.claim,
        head.as_mut().and_then(|meta| meta.labels.as_mut()),
    ) {
        labels
            .labels
            .insert(state::label::CLAIM_ID.to_owned(), claim.to_string());
    }
    v2::Ip {
        uuid: ip.id.to_string(),
        meta: head,
        ip: ip.ip.to_string(),
        name: ip.name.clone(),
        description: ip.description.clone(),
        network: ip.network.to_string(),
        project: ip.project.to_string(),
        r#type: ip_type(ip.kind),
        namespace: ip.namespace.map(|project| project.to_string()),
    }
}

/// `true` if the query matches this address.
pub fn ip_matches(tables: &Tables, ip: &state::Ip, query: Option<&v2::IpQuery>) -> bool {
    let Some(query) = query else { return true };
    let in_prefix = |prefix: &String| {
        let parent = tables
            .get::<state::Network>(&ip.network)
            .and_then(|network| network.prefix_of(ip.ip).copied());
        parent.is_some_and(|parent| parent.to_string() == *prefix)
    };
    query
        .ip
        .as_ref()
        .is_none_or(|wanted| wanted.parse() == Ok(ip.ip))
        && is(query.network.as_ref(), ip.network.as_str())
        && is(query.project.as_ref(), &ip.project.to_string())
        && is(query.name.as_ref(), &ip.name)
        && is(query.uuid.as_ref(), &ip.id.to_string())
        && is_opt(query.machine.as_ref(), ip.machine.as_ref())
        && query.parent_prefix_cidr.as_ref().is_none_or(in_prefix)
        && has_labels(&ip.meta.labels, query.labels.as_ref())
        && is_choice(query.r#type, ip_type(ip.kind))
        && is_choice(query.address_family, family(Family::of(ip.ip)))
        && is_opt(query.namespace.as_ref(), ip.namespace.as_ref())
}

/// `true` if a project may use this network beside its child networks: its own shared and external
/// ones, and those without a project. Underlays are for administrators only.
pub fn is_base_network(network: &state::Network, project: Option<ProjectId>) -> bool {
    match (network.kind, network.project) {
        (state::NetworkType::Underlay, _) => false,
        (_, None) => true,
        (kind, owner) => owner == project && kind != state::NetworkType::Child,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_prefixes() {
        for (net, count) in [
            ("10.0.0.0/24", 254),
            ("10.0.0.0/31", 2),
            ("10.0.0.1/32", 1),
            ("fd00::/120", 256),
            ("fd00::/64", u64::MAX),
        ] {
            assert_eq!(hosts(&net.parse().unwrap()), count, "{net}");
        }
    }
}
