//! BGP filters: the prefixes and VNIs that a machine may announce to its switches.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::machine::entity::{Allocation, AllocationType, Machine, Segment};
use crate::network::entity::{Network, NetworkType};
use crate::network::read::project_ips;
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
        AllocationType::Machine => of_machine(tables, allocation),
        AllocationType::Firewall => of_firewall(allocation),
    })
}

/// The prefixes of the machine's child networks, the announcable prefixes of their parents, and the
/// other addresses of its project except those of underlays.
fn of_machine(tables: &Tables, allocation: &Allocation) -> BgpFilter {
    let children = || {
        allocation
            .networks
            .iter()
            .filter(|network| network.kind.is_child())
    };
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
    let others = project_ips(tables, allocation.project)
        .filter(|ip| !is_inside(&ip.ip))
        .filter(|ip| {
            let network = tables.get::<Network>(&ip.network);
            network.is_some_and(|network| network.kind != NetworkType::Underlay)
        });
    cidrs.extend(others.map(|ip| IpNet::from(ip.ip)));
    BgpFilter {
        cidrs,
        vnis: BTreeSet::new(),
    }
}

/// The underlay addresses at which the firewall's tunnels end, and the VNIs of its networks.
fn of_firewall(allocation: &Allocation) -> BgpFilter {
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
