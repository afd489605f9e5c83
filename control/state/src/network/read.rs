//! Questions about networks and addresses.

use std::sync::Arc;

use ipnet::IpNet;
use proto_types::{NetworkId, ProjectId};

use crate::network::entity::{Family, Ip, Network};
use crate::network::ipam;
use crate::tables::Tables;

/// Usage of a network in one IP version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Addresses that hosts can have; saturates.
    pub available_ips: u64,
    /// Addresses that are taken.
    pub used_ips: u64,
    /// Child prefixes of the default length that there can be; saturates.
    pub available_prefixes: u64,
    /// Child prefixes that are taken.
    pub used_prefixes: u64,
}

/// Usage of a network in one IP version. `None` means that the network has no prefix of it.
pub fn network_usage(tables: &Tables, network: &Network, family: Family) -> Option<Usage> {
    if !network.has_family(family) {
        return None;
    }
    let mine = network
        .prefixes
        .iter()
        .filter(|net| Family::of_net(net) == family);
    let sum =
        |count: &dyn Fn(&IpNet) -> u64| mine.clone().map(count).fold(0u64, u64::saturating_add);
    let length = network.default_child_length.get(family);
    let children = child_networks(tables, &network.id);
    let used_prefixes = children
        .flat_map(|child| &child.prefixes)
        .filter(|net| Family::of_net(net) == family)
        .count();
    let used_ips = network_ips(tables, &network.id)
        .filter(|ip| Family::of(ip.ip) == family)
        .count();
    let is_super = network.kind.is_super();
    Some(Usage {
        available_ips: if is_super { 0 } else { sum(&ipam::host_count) },
        used_ips: u64::try_from(used_ips).unwrap_or(u64::MAX),
        available_prefixes: match length {
            Some(length) if is_super => sum(&|net| ipam::prefix_count(net, length)),
            _ => 0,
        },
        used_prefixes: u64::try_from(used_prefixes).unwrap_or(u64::MAX),
    })
}

/// Child networks of a network.
pub fn child_networks<'a>(
    tables: &'a Tables,
    network: &NetworkId,
) -> impl Iterator<Item = &'a Arc<Network>> {
    let ids = tables.index().children.get(network).into_iter().flatten();
    ids.filter_map(|id| tables.get::<Network>(id))
}

/// Addresses of a network.
pub fn network_ips<'a>(
    tables: &'a Tables,
    network: &NetworkId,
) -> impl Iterator<Item = &'a Arc<Ip>> {
    let keys = tables
        .index()
        .network_ips
        .get(network)
        .into_iter()
        .flatten();
    keys.filter_map(|key| tables.get::<Ip>(key))
}

/// Addresses of a project.
pub fn project_ips(tables: &Tables, project: ProjectId) -> impl Iterator<Item = &Arc<Ip>> {
    let keys = tables
        .index()
        .project_ips
        .get(&project)
        .into_iter()
        .flatten();
    keys.filter_map(|key| tables.get::<Ip>(key))
}
