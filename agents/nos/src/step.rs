use std::net::{IpAddr, Ipv4Addr};

use proto_types::Asn;

use crate::model::{
    AsPathList, BgpNeighbour, Gateway, Membership, Mtu, PolicyName, PortName, PrefixListId,
    PrefixRule, RouteMap, Tunnel, Vlan, Vrf, VrfName, VxlanFilter,
};
use crate::problem::SwitchObject;
use crate::vni::Vni;

/// The smallest change of a switch that can be verified. Idempotent.
///
/// [`crate::interpret`] says what each step means; a back-end has to do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields are the keys and values of the model"
)]
pub enum Step {
    /// Brings a port up or down.
    SetAdmin { port: PortName, up: bool },
    /// Sets the MTU of a port.
    SetMtu { port: PortName, mtu: Mtu },
    /// Takes a port out of its place, into nobody's.
    Quarantine { port: PortName },
    /// Puts a port into a segment, a VRF or the underlay: from quarantine, or into the segment that
    /// it is in, with another privacy.
    Enter { port: PortName, place: Membership },
    /// Makes a segment, sets its MTU and its way to other switches, or repairs it. A repair loses remotes and gateway.
    EnsureSegment {
        vni: Vni,
        vlan: Option<Vlan>,
        mtu: Mtu,
        tunnel: Tunnel,
    },
    /// Removes a segment without ports, with its gateway.
    RemoveSegment { vni: Vni },
    /// Sends the broadcasts of a segment to one more tunnel end.
    AddRemote { vni: Vni, remote: IpAddr },
    /// Stops sending to a tunnel end.
    RemoveRemote { vni: Vni, remote: IpAddr },
    /// Sets or removes the gateway of a segment.
    SetGateway { vni: Vni, gateway: Option<Gateway> },
    /// Moves the kernel's rule for VRFs before the one for its own addresses.
    PutL3mdevFirst,
    /// Makes a VRF, or repairs it, also its unreachable default.
    EnsureVrf { name: VrfName, vrf: Vrf },
    /// Removes a VRF without ports, gateways and BGP.
    RemoveVrf { name: VrfName },
    /// Puts the rules for all ports in place, and those of firewalls that are as they were set.
    EnsurePacketFilter,
    /// Sets the packets that the firewall on a port may send.
    SetVxlanFilter { port: PortName, filter: VxlanFilter },
    /// Removes the filter of a port that is no firewall's any more.
    RemoveVxlanFilter { port: PortName },
    /// Makes BGP, sets its router id, drains it or ends the drain, or repairs the settings of all
    /// instances.
    EnsureBgp {
        asn: Asn,
        router_id: Ipv4Addr,
        is_draining: bool,
    },
    /// Removes BGP without neighbours and VRFs.
    RemoveBgp,
    /// Makes the BGP instance of a VRF, which announces its routes into EVPN.
    EnsureBgpVrf { vrf: VrfName },
    /// Removes the BGP instance of a VRF without neighbours.
    RemoveBgpVrf { vrf: VrfName },
    /// Makes or changes the neighbour on a port. `vrf` is `None` in the default VRF.
    SetNeighbour {
        vrf: Option<VrfName>,
        port: PortName,
        neighbour: BgpNeighbour,
    },
    /// Removes a neighbour.
    RemoveNeighbour {
        vrf: Option<VrfName>,
        port: PortName,
    },
    /// Makes a prefix list that permits nothing, unless there is one.
    EnsurePrefixList { list: PrefixListId },
    /// Permits one more prefix.
    AddPrefix {
        list: PrefixListId,
        rule: PrefixRule,
    },
    /// Permits a prefix no longer.
    RemovePrefix {
        list: PrefixListId,
        rule: PrefixRule,
    },
    /// Removes a prefix list that no route map names.
    RemovePrefixList { list: PrefixListId },
    /// Makes or changes an as-path list.
    SetAsPathList { name: PolicyName, list: AsPathList },
    /// Removes an as-path list that no route map names.
    RemoveAsPathList { name: PolicyName },
    /// Makes or changes a route map.
    SetRouteMap { name: PolicyName, map: RouteMap },
    /// Removes a route map that no neighbour names.
    RemoveRouteMap { name: PolicyName },
    /// Sets the address of the loopback and of the tunnels.
    SetVtep { address: IpAddr },
}

impl Step {
    /// The part of the switch that the step changes.
    #[must_use]
    pub fn object(&self) -> SwitchObject {
        match self {
            Self::SetAdmin { port, .. }
            | Self::SetMtu { port, .. }
            | Self::Quarantine { port }
            | Self::Enter { port, .. } => SwitchObject::Port(port.clone()),
            Self::EnsureSegment { vni, .. }
            | Self::RemoveSegment { vni }
            | Self::AddRemote { vni, .. }
            | Self::RemoveRemote { vni, .. } => SwitchObject::Segment(*vni),
            Self::SetGateway { vni, .. } => SwitchObject::Gateway(*vni),
            Self::PutL3mdevFirst => SwitchObject::RoutingRules,
            Self::EnsurePacketFilter => SwitchObject::PacketFilter,
            Self::SetVxlanFilter { port, .. } | Self::RemoveVxlanFilter { port } => {
                SwitchObject::VxlanFilter(port.clone())
            }
            Self::EnsureVrf { name, .. } | Self::RemoveVrf { name } => {
                SwitchObject::Vrf(name.clone())
            }
            Self::EnsureBgp { .. } | Self::RemoveBgp => SwitchObject::Bgp,
            Self::EnsureBgpVrf { vrf } | Self::RemoveBgpVrf { vrf } => {
                SwitchObject::BgpVrf(vrf.clone())
            }
            Self::SetNeighbour { vrf, port, .. } | Self::RemoveNeighbour { vrf, port } => {
                SwitchObject::Neighbour {
                    vrf: vrf.clone(),
                    port: port.clone(),
                }
            }
            Self::EnsurePrefixList { list }
            | Self::AddPrefix { list, .. }
            | Self::RemovePrefix { list, .. }
            | Self::RemovePrefixList { list } => SwitchObject::PrefixList(list.clone()),
            Self::SetAsPathList { name, .. } | Self::RemoveAsPathList { name } => {
                SwitchObject::AsPathList(name.clone())
            }
            Self::SetRouteMap { name, .. } | Self::RemoveRouteMap { name } => {
                SwitchObject::RouteMap(name.clone())
            }
            Self::SetVtep { .. } => SwitchObject::Vtep,
        }
    }

    /// `true` if the step removes an object that nobody is in any more.
    pub(crate) fn removes(&self) -> bool {
        matches!(
            self,
            Self::RemoveSegment { .. }
                | Self::RemoveVrf { .. }
                | Self::RemoveVxlanFilter { .. }
                | Self::RemoveBgp
                | Self::RemoveBgpVrf { .. }
                | Self::RemovePrefixList { .. }
                | Self::RemoveAsPathList { .. }
                | Self::RemoveRouteMap { .. }
        )
    }
}
