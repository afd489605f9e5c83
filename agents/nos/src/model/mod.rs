//! The state of a switch, desired or observed, in one type.
//!
//! Equal meaning is equal value: maps and sets are sorted, prefixes have no host bits, names and
//! numbers are checked when they are made. Values that only a broken switch has (a segment that is
//! not intact, a neighbour without filter) can be observed; [`crate::fit`] refuses them in a
//! desired state.

mod as_path_list;
mod bgp;
mod error;
mod names;
mod neighbour;
mod numbers;
mod packet_filter;
mod policies;
mod port;
mod prefix_list;
mod route_map;
mod segment;
mod tunnel;
mod vrf;

use std::collections::BTreeMap;
use std::net::IpAddr;

pub use as_path_list::AsPathList;
pub use bgp::{Bgp, BgpNeighbours};
pub use error::ModelError;
pub use names::{PolicyName, PortName, VrfName};
pub use neighbour::BgpNeighbour;
pub use numbers::{Mtu, Table, Vlan};
pub use packet_filter::{PacketFilter, VxlanFilter};
pub use policies::Policies;
pub use port::{Membership, Port};
pub use prefix_list::{PrefixList, PrefixListId, PrefixRule};
pub use route_map::{RouteMap, RouteMatch, RouteRule};
pub use segment::{Gateway, Segment};
pub use tunnel::Tunnel;
pub use vrf::Vrf;

use crate::vni::Vni;

/// The state of a switch, desired or observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchModel {
    /// Ports by name. A port that a desired state does not name is quarantined.
    pub ports: BTreeMap<PortName, Port>,
    /// L2 segments on this switch. A segment that a desired state does not name is removed.
    pub segments: BTreeMap<Vni, Segment>,
    /// VRFs on this switch.
    pub vrfs: BTreeMap<VrfName, Vrf>,
    /// Policies, which the neighbours of BGP name.
    pub policies: Policies,
    /// BGP. `None` if the switch speaks none.
    pub bgp: Option<Bgp>,
    /// Address of the loopback, the source of tunnels. In a desired state `None` means that it
    /// stays.
    pub vtep: Option<IpAddr>,
    /// `true` if the kernel's rule for VRFs (l3mdev) stands before the one for the table `local`.
    /// Otherwise a tenant in a VRF reaches the addresses of the switch itself.
    pub is_l3mdev_first: bool,
    /// The packets that ports may send to the switch itself and into the underlay.
    pub packet_filter: PacketFilter,
}

impl SwitchModel {
    /// The session that is bound to a port, with its VRF; `None` inside means the default VRF.
    #[must_use]
    pub fn neighbour_on(&self, port: &PortName) -> Option<(Option<&VrfName>, &BgpNeighbour)> {
        let mut instances = self.bgp.iter().flat_map(Bgp::instances);
        instances.find_map(|(vrf, neighbours)| Some((vrf, neighbours.get(port)?)))
    }

    /// `true` if a port with a session is where the session belongs. A device that is no port of
    /// this switch always is.
    #[must_use]
    pub fn is_bound(&self, vrf: Option<&VrfName>, port: &PortName) -> bool {
        let port = self.ports.get(port);
        port.is_none_or(|port| match (vrf, &port.membership) {
            (None, Membership::Underlay) => true,
            (Some(vrf), Membership::Routed(of)) => vrf == of,
            _ => false,
        })
    }
}
