//! The prefixes that a firewall may announce by EVPN in each of its networks.
//!
//! A firewall is the way out of its project's networks: there it announces the way to the other
//! networks that it joins. In every other network it is a host like others, with its project's
//! addresses in that network. Otherwise its root could take the traffic of other projects' hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;

use crate::desired::NetworkFilter;
use crate::desired::announcer::Announcer;
use crate::machine::entity::{Allocation, AllocationNetwork};
use crate::network::entity::NetworkType;

/// The source of a [`NetworkFilter`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NetworkPlan {
    /// The part that the firewall's allocation decides.
    fixed: NetworkFilter,
    /// Networks that are not the project's, whose addresses of the project pass. Each is there once;
    /// several networks have one VNI if they share the VRF of their super network.
    pub(super) announcers: BTreeSet<Arc<Announcer>>,
}

impl NetworkPlan {
    /// The filter, with the prefixes that an announcer has now.
    pub(super) fn resolve(
        &self,
        prefixes: impl Fn(&Arc<Announcer>) -> Arc<BTreeSet<IpNet>>,
    ) -> NetworkFilter {
        let mut all: Vec<IpNet> = self.fixed.prefixes.iter().copied().collect();
        for announcer in &self.announcers {
            all.extend(prefixes(announcer).iter());
        }
        NetworkFilter {
            routes: self.fixed.routes.clone(),
            prefixes: IpNet::aggregate(&all).into_iter().collect(),
        }
    }
}

/// The plans of a firewall's networks by VNI.
pub(super) fn network_plans(allocation: &Allocation) -> BTreeMap<u32, NetworkPlan> {
    let mut plans: BTreeMap<u32, NetworkPlan> = BTreeMap::new();
    for network in joined(allocation) {
        let plan = plans.entry(network.vrf).or_default();
        let own = network.ips.iter().copied().map(IpNet::from);
        plan.fixed.prefixes.extend(own);
        if is_own(allocation, network) {
            add_way_out(&mut plan.fixed, allocation, network);
        } else {
            let id = network.network.clone();
            let announcer = Announcer::of_addresses(allocation.project, id);
            plan.announcers.insert(Arc::new(announcer));
            if network.kind.is_child() {
                add_unique_children(&mut plan.fixed, allocation, network);
            }
        }
    }
    plans
}

/// The networks with a VRF, of which the underlay is none.
fn joined(allocation: &Allocation) -> impl Iterator<Item = &AllocationNetwork> {
    let networks = allocation.networks.iter();
    networks.filter(|network| network.kind != NetworkType::Underlay && network.vrf != 0)
}

/// `true` if the firewall is the way out of a network: a child of its own project. Older allocations
/// have no project of their networks.
fn is_own(allocation: &Allocation, network: &AllocationNetwork) -> bool {
    let is_projects = network.project.is_none_or(|of| of == allocation.project);
    network.kind.is_child() && is_projects
}

/// Adds the way from a network of the project to the others: their prefixes, and what they lead to.
fn add_way_out(filter: &mut NetworkFilter, allocation: &Allocation, network: &AllocationNetwork) {
    for other in joined(allocation).filter(|other| other.vrf != network.vrf) {
        let prefixes = other.prefixes.iter().chain(&other.destination_prefixes);
        prefixes.for_each(|prefix| permit(filter, *prefix, &network.prefixes));
    }
}

/// Adds the prefixes of the project's networks to another project's network, whose hosts answer the
/// project's machines there. Only those that no other project can have: prefixes of a namespace may
/// be other guests' as well.
fn add_unique_children(
    filter: &mut NetworkFilter,
    allocation: &Allocation,
    network: &AllocationNetwork,
) {
    let own = joined(allocation).filter(|own| is_own(allocation, own) && own.namespace.is_none());
    for prefix in own.flat_map(|own| &own.prefixes) {
        permit(filter, *prefix, &network.prefixes);
    }
}

/// Permits a prefix in a network, but none of the network's hosts with it.
fn permit(filter: &mut NetworkFilter, prefix: IpNet, of_network: &[IpNet]) {
    let mut of_network = of_network.iter();
    if of_network.clone().any(|own| own.contains(&prefix)) {
        return;
    }
    let is_around = of_network.any(|own| prefix.contains(own));
    // Everything in a default route is every address of every network.
    if is_around || prefix.prefix_len() == 0 {
        filter.routes.insert(prefix);
    } else {
        filter.prefixes.insert(prefix);
    }
}
