//! BGP instances.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::asn::Asn;
use super::family::PerIp;
use super::interface_name::InterfaceName;
use super::name::ObjectName;
use super::peer::{Neighbour, PeerGroup};

/// A BGP instance: one in the default VRF, one in every tenant's VRF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BgpInstance {
    /// Our autonomous system.
    pub asn: Asn,
    /// Router id. `None` means that FRR chooses.
    pub router_id: Option<Ipv4Addr>,
    /// `true` if routes of external peers without a filter are dropped (RFC 8212).
    pub ebgp_requires_policy: bool,
    /// `true` if peers exchange IPv4 routes without being activated, as FRR has it unless told.
    /// Only observed: [`FrrConfig::check`](super::FrrConfig::check) refuses to desire it.
    pub ipv4_by_default: bool,
    /// `true` if paths through different autonomous systems of equal length share the load.
    pub multipath_relax: bool,
    /// `true` if our routes are announced as the last resort (RFC 8326), before an upgrade.
    pub graceful_shutdown: bool,
    /// Peer groups.
    pub groups: BTreeMap<ObjectName, PeerGroup>,
    /// Unnumbered neighbours, by the interface. Neighbours by address are foreign.
    pub neighbours: BTreeMap<InterfaceName, Neighbour>,
    /// Announcement of the addresses of the VRF's interfaces.
    pub redistribute: PerIp<Redistribute>,
    /// `true` if the VRF's routes are announced as EVPN routes of type 5.
    pub advertise: PerIp<bool>,
    /// `true` if every VNI of the kernel is announced. Only in the default VRF.
    pub advertise_all_vni: bool,
}

/// Announcement of connected routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Redistribute {
    /// No connected route is announced.
    #[default]
    Nothing,
    /// Every connected route is announced.
    Connected,
    /// The connected routes that a route-map permits are announced.
    Filtered(ObjectName),
}

impl BgpInstance {
    /// An instance without peers that announces nothing, with the options that we always want.
    #[must_use]
    pub fn new(asn: Asn) -> Self {
        Self {
            asn,
            router_id: None,
            ebgp_requires_policy: true,
            ipv4_by_default: false,
            multipath_relax: false,
            graceful_shutdown: false,
            groups: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            redistribute: PerIp::default(),
            advertise: PerIp::default(),
            advertise_all_vni: false,
        }
    }
}
