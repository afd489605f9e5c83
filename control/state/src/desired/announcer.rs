//! The prefixes that the machines of a project may announce.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use proto_types::{NetworkId, ProjectId};

use crate::machine::entity::{Allocation, AllocationNetwork};
use crate::network::entity::{Network, NetworkType};
use crate::network::read::project_ips;
use crate::tables::Tables;

/// The part of an allocation that decides which prefixes its machine may announce. Machines of a
/// project in the same networks have equal ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Announcer {
    // First, so that the announcers of a project are neighbours in a sorted map.
    project: ProjectId,
    /// Child networks with those of their prefixes that the project owns. Empty means that the
    /// project is a guest there.
    networks: BTreeMap<NetworkId, Vec<IpNet>>,
    /// The network whose addresses are meant, for a firewall. `None` for a server, which may
    /// announce what it owns in every network.
    within: Option<NetworkId>,
}

impl Announcer {
    /// The announcer of a server's allocation.
    pub(super) fn of(allocation: &Allocation) -> Self {
        let children = allocation.networks.iter();
        let children = children.filter(|network| network.kind.is_child());
        let owned = |network: &AllocationNetwork| {
            // In a network that another project shares, a machine has single addresses only: with
            // the prefix it could announce those of the network's owner.
            let is_own = network.project.is_none_or(|of| of == allocation.project);
            let prefixes = if is_own {
                network.prefixes.clone()
            } else {
                Vec::new()
            };
            (network.network.clone(), prefixes)
        };
        Self {
            project: allocation.project,
            networks: children.map(owned).collect(),
            within: None,
        }
    }

    /// The announcer of a project's addresses in one network.
    pub(super) fn of_addresses(project: ProjectId, network: NetworkId) -> Self {
        Self {
            within: Some(network),
            ..Self::first(project)
        }
    }

    /// Sorts before every announcer of the project.
    pub(super) fn first(project: ProjectId) -> Self {
        Self {
            project,
            networks: BTreeMap::new(),
            within: None,
        }
    }

    /// Project of the machines.
    pub(super) fn project(&self) -> ProjectId {
        self.project
    }

    /// `true` if a prefix of its networks holds the address: it needs no prefix of its own.
    pub(super) fn covers(&self, ip: IpAddr) -> bool {
        let mut prefixes = self.networks.values().flatten();
        prefixes.any(|prefix| prefix.contains(&ip))
    }

    /// `true` if a change of the network may change its prefixes.
    pub(super) fn depends_on(&self, tables: &Tables, network: &NetworkId) -> bool {
        let mut children = self.networks.keys();
        children.any(|child| {
            let parent = tables.get::<Network>(child).map(|child| &child.parent);
            child == network || parent.is_some_and(|parent| parent.as_ref() == Some(network))
        })
    }

    /// The prefixes of the child networks, the announcable prefixes of their parents, and the
    /// other addresses of the project except those of underlays. Of a firewall's network: the
    /// project's addresses in it.
    pub(super) fn prefixes(&self, tables: &Tables) -> BTreeSet<IpNet> {
        if let Some(network) = &self.within {
            let ips = project_ips(tables, self.project).filter(|ip| ip.network == *network);
            return ips.map(|ip| IpNet::from(ip.ip)).collect();
        }
        let mut cidrs: BTreeSet<IpNet> = BTreeSet::new();
        // A guest in another project's network has no prefix of it, and so none of the announcable
        // ones either: it would take the traffic of the owner's pods.
        let own = self.networks.iter();
        for (child, prefixes) in own.filter(|(_, prefixes)| !prefixes.is_empty()) {
            cidrs.extend(prefixes);
            let above = tables
                .get::<Network>(child)
                .and_then(|child| tables.get::<Network>(child.parent.as_ref()?));
            let above = above.iter();
            cidrs.extend(above.flat_map(|above| above.additional_announcable_cidrs.iter()));
        }
        // Any machine of a project may announce any address of the project: that is how an address
        // moves between machines. Addresses of underlays do not pass: a machine that announced one
        // would attract the tunnels of a firewall. Those of another network's namespace neither:
        // they may be another project's addresses in a network that this one only shares.
        let others = project_ips(tables, self.project)
            .filter(|ip| !self.covers(ip.ip))
            .filter(|ip| ip.namespace.is_none() || self.networks.contains_key(&ip.network))
            .filter(|ip| {
                let network = tables.get::<Network>(&ip.network);
                network.is_some_and(|network| network.kind != NetworkType::Underlay)
            });
        cidrs.extend(others.map(|ip| IpNet::from(ip.ip)));
        cidrs
    }
}
