//! BGP filters: the prefixes and VNIs that a machine may announce to its switches.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::desired::announcer::Announcer;
use crate::machine::entity::{Allocation, AllocationType, Machine, Segment};
use crate::network::entity::NetworkType;
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
            cidrs: Announcer::of(allocation).prefixes(tables),
            vnis: BTreeSet::new(),
        },
        AllocationType::Firewall => of_firewall(allocation),
    })
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
