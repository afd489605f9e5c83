//! Objects in FRR that a step changes.

use std::fmt;

use super::model::{BgpVrf, InterfaceName, ObjectName, VrfName};

/// A thing in FRR that a step changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrrObject {
    /// Router id of every daemon.
    RouterId,
    /// The settings by which zebra takes routes from bgpd and gives them to the kernel.
    ZebraSettings,
    /// A VRF and its VNI.
    Vrf(VrfName),
    /// A BGP instance and its options.
    Instance(BgpVrf),
    /// A peer group.
    Group(BgpVrf, ObjectName),
    /// A neighbour.
    Neighbour(BgpVrf, InterfaceName),
    /// An IPv4 prefix list.
    PrefixList(ObjectName),
    /// An IPv6 prefix list.
    Ipv6PrefixList(ObjectName),
    /// An AS-path list.
    AsPathList(ObjectName),
    /// An extended-community list.
    CommunityList(ObjectName),
    /// A route-map.
    RouteMap(ObjectName),
}

impl FrrObject {
    /// The daemons that keep it.
    pub(super) fn daemons(&self) -> &'static [&'static str] {
        match self {
            Self::RouterId | Self::ZebraSettings => &["zebra"],
            Self::Instance(_)
            | Self::Group(..)
            | Self::Neighbour(..)
            | Self::AsPathList(_)
            | Self::CommunityList(_) => &["bgpd"],
            Self::Vrf(_) | Self::PrefixList(_) | Self::Ipv6PrefixList(_) | Self::RouteMap(_) => {
                &["zebra", "bgpd"]
            }
        }
    }
}

impl fmt::Display for FrrObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RouterId => f.write_str("router id"),
            Self::ZebraSettings => f.write_str("settings of zebra"),
            Self::Vrf(name) => write!(f, "VRF {name}"),
            Self::Instance(vrf) => write!(f, "BGP in VRF {vrf}"),
            Self::Group(vrf, name) => write!(f, "peer group {name} in VRF {vrf}"),
            Self::Neighbour(vrf, name) => write!(f, "neighbour {name} in VRF {vrf}"),
            Self::PrefixList(name) => write!(f, "prefix list {name}"),
            Self::Ipv6PrefixList(name) => write!(f, "IPv6 prefix list {name}"),
            Self::AsPathList(name) => write!(f, "AS-path list {name}"),
            Self::CommunityList(name) => write!(f, "extended-community list {name}"),
            Self::RouteMap(name) => write!(f, "route-map {name}"),
        }
    }
}
