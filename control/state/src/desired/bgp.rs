//! BGP filters: the prefixes and VNIs that a machine may announce to its switches.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::machine::entity::{Allocation, AllocationNetwork, AllocationType, Machine, Segment};
use crate::network::entity::{Ip, Network, NetworkType};
use crate::tables::Tables;

/// The BGP filter of a machine's switch ports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BgpFilter {
    /// Prefixes that pass, as announced: a machine's own networks, and /32 or /128 of addresses.
    pub cidrs: BTreeSet<IpNet>,
    /// VNIs whose EVPN routes pass. Empty for servers: only firewalls speak EVPN.
    pub vnis: BTreeSet<u32>,
}

/// The filter of a machine's ports. `None` means that they are not in the tenant's segment, so that
/// the machine may announce nothing.
pub fn bgp_filter(tables: &Tables, machine: &Machine) -> Option<BgpFilter> {
    let allocation = machine.allocation.as_ref()?;
    // The allocation alone does not say that the tenant's system runs. The ports enter the tenant's
    // segment when hammer hands over to the installed system, and leave it when the reclaim has
    // powered the machine off.
    if machine.segment != Segment::Tenant {
        return None;
    }
    Some(match allocation.kind {
        AllocationType::Machine => BgpFilter {
            cidrs: machine_cidrs(tables, allocation, |network| network.kind.is_child()),
            vnis: BTreeSet::new(),
        },
        AllocationType::Firewall => of_firewall(allocation),
    })
}

/// The prefixes of those of a machine's networks for which `is_own` holds, the announcable prefixes
/// of their parents, and the other addresses of its project except those of underlays.
pub(super) fn machine_cidrs(
    tables: &Tables,
    allocation: &Allocation,
    is_own: impl Fn(&AllocationNetwork) -> bool,
) -> BTreeSet<IpNet> {
    let children = || allocation.networks.iter().filter(|network| is_own(network));
    let mut cidrs: BTreeSet<IpNet> = BTreeSet::new();
    for child in children() {
        cidrs.extend(child.prefixes.iter().copied());
        let above = tables
            .get::<Network>(&child.network)
            .and_then(|child| tables.get::<Network>(child.parent.as_ref()?));
        cidrs.extend(
            above
                .iter()
                .flat_map(|network| network.additional_announcable_cidrs.iter().copied()),
        );
    }
    let is_inside = |ip: &std::net::IpAddr| {
        let mut prefixes = children().flat_map(|child| &child.prefixes);
        prefixes.any(|prefix| prefix.contains(ip))
    };
    // Any machine of a project may announce any address of the project: that is how an address
    // moves between machines. Addresses of underlays do not pass: a machine that announced one
    // would attract the tunnels of a firewall.
    // Most addresses are inside: they are left out before their records are looked up.
    let keys = tables.index().project_ips.get(&allocation.project);
    let others = keys.into_iter().flatten().filter(|key| !is_inside(&key.ip));
    let others = others.filter_map(|key| tables.get::<Ip>(key)).filter(|ip| {
        let network = tables.get::<Network>(&ip.network);
        network.is_some_and(|network| network.kind != NetworkType::Underlay)
    });
    cidrs.extend(others.map(|ip| IpNet::from(ip.ip)));
    cidrs
}

/// The underlay addresses at which the firewall's tunnels end, and the VNIs of its networks.
pub(super) fn of_firewall(allocation: &Allocation) -> BgpFilter {
    let mut filter = BgpFilter::default();
    for network in &allocation.networks {
        if network.kind == NetworkType::Underlay {
            filter
                .cidrs
                .extend(network.ips.iter().copied().map(IpNet::from));
        } else if network.vrf != 0 {
            filter.vnis.insert(network.vrf);
        }
    }
    filter
}
