//! The way of a packet that a firewall sends: it chooses among its networks, and in an EVPN
//! partition its tunnels begin in itself.

use std::net::IpAddr;
use std::sync::Arc;

use crate::desired::PortPlace;
use crate::machine::entity::{Allocation, AllocationNetwork, Machine};
use crate::network::entity::NetworkType;
use crate::overlay::trace_link::{CableEnd, TraceOrigin};
use crate::overlay::trace_walk::{Stopped, TraceWalk, firewall_end};

impl TraceWalk<'_> {
    /// Follows the packet from a firewall.
    pub(super) fn start_firewall(
        &mut self,
        firewall: &Arc<Machine>,
        allocation: &Allocation,
    ) -> Result<String, Stopped> {
        let (id, to) = (firewall.id, self.to);
        let way = way(allocation, to);
        let tenants = way.filter(|network| network.kind != NetworkType::Underlay);
        let Some(way) = tenants else {
            // The tunnel ends of leaves may be in none of its networks.
            let partition = firewall.partition.as_ref();
            let owner = partition.and_then(|partition| self.underlay_owner(partition));
            if way.is_none() && owner.is_none() {
                return self.stop("firewall", id, format!("has no network with {to}"));
            }
            return self.cross_underlay(firewall, owner);
        };
        let detail = format!("sends into network {}, VRF {}", way.network, way.vrf);
        self.pass("firewall", id, detail);
        let here = self.enter(firewall)?;
        let partition = here.switch.partition.clone();
        let Some(target) = self.owner(&partition, way.vrf) else {
            if way.kind.is_child() {
                let reason = format!("no machine of VRF {} has {to}", way.vrf);
                return self.stop("leaf", &here.switch.id, reason);
            }
            return self.leave_partition(&here, firewall, way);
        };
        // Without EVPN its port is in the segment of its tenant, as that of a machine.
        let has_tunnels = here.intent.place == PortPlace::Underlay;
        let origin = TraceOrigin {
            end: here,
            firewall: has_tunnels.then(|| Arc::clone(firewall)),
        };
        self.leave(&origin, way.vrf, &target)
    }

    /// Through the underlay, to a switch or a firewall.
    fn cross_underlay(
        &mut self,
        firewall: &Machine,
        owner: Option<String>,
    ) -> Result<String, Stopped> {
        let to = self.to;
        self.pass("firewall", firewall.id, "sends into the underlay");
        let here = self.enter(firewall)?;
        let leaf = &here.switch.id;
        let Some(owner) = owner else {
            let reason = format!("underlay: no switch and no firewall has {to}");
            return self.stop("leaf", leaf, reason);
        };
        self.pass("leaf", leaf, format!("underlay: to {owner}"));
        Ok(format!("arrives at {owner}"))
    }

    /// Out of the partition, to routers that control does not configure.
    fn leave_partition(
        &mut self,
        here: &CableEnd,
        firewall: &Machine,
        way: &AllocationNetwork,
    ) -> Result<String, Stopped> {
        let leaf = &here.switch;
        let at = format!("VNI {}", way.vrf);
        if let Some(reason) = self.evpn_obstacle(leaf) {
            return self.stop("tunnel", at, reason);
        }
        self.pass("leaf", &leaf.id, "to a router of the site");
        if here.intent.place == PortPlace::Underlay {
            self.pass("tunnel", at, format!("from {}", firewall_end(firewall)));
        }
        Ok(format!(
            "leaves the partition through network {}; routers of the site are not known to control",
            way.network
        ))
    }
}

/// The network that the firewall sends an address into: that of the longest prefix with it.
fn way(allocation: &Allocation, to: IpAddr) -> Option<&AllocationNetwork> {
    let longest = |network: &AllocationNetwork| {
        let prefixes = network.prefixes.iter().chain(&network.destination_prefixes);
        let with = prefixes.filter(|prefix| prefix.contains(&to));
        with.map(|prefix| prefix.prefix_len()).max()
    };
    let networks = allocation.networks.iter();
    let networks =
        networks.filter(|network| network.vrf != 0 || network.kind == NetworkType::Underlay);
    let ways = networks.filter_map(|network| Some((longest(network)?, network)));
    ways.max_by_key(|(length, _)| *length)
        .map(|(_, network)| network)
}
