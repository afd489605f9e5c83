use std::fmt;

use thiserror::Error;

use crate::capability::Capability;
use crate::frr::RoutingError;
use crate::model::{PolicyName, PortName, PrefixListId, VrfName};
use crate::vni::Vni;

/// A part of a switch, by its key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwitchObject {
    /// A port.
    Port(PortName),
    /// A segment.
    Segment(Vni),
    /// The gateway of a segment.
    Gateway(Vni),
    /// A VRF.
    Vrf(VrfName),
    /// A prefix list.
    PrefixList(PrefixListId),
    /// An as-path list.
    AsPathList(PolicyName),
    /// A route map.
    RouteMap(PolicyName),
    /// BGP as a whole.
    Bgp,
    /// The BGP instance of a VRF.
    BgpVrf(VrfName),
    /// A neighbour. `vrf` is `None` in the default VRF.
    Neighbour {
        /// The VRF of the session.
        vrf: Option<VrfName>,
        /// The port that the far end is on.
        port: PortName,
    },
    /// The loopback address.
    Vtep,
    /// The order of the kernel's routing rules.
    RoutingRules,
    /// The packets that every port may send.
    PacketFilter,
    /// The packets that the firewall on a port may send.
    VxlanFilter(PortName),
}

/// A part of a desired state that this switch cannot have. The others are planned all the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{object} {refusal}")]
pub struct Problem {
    /// The part.
    pub object: SwitchObject,
    /// The reason.
    pub refusal: Refusal,
}

/// The reason why a switch cannot have a part of a desired state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Refusal {
    /// The back-end lacks a capability.
    #[error("needs {0}, which this switch lacks")]
    Unsupported(Capability),
    /// The switch has no port of this name.
    #[error("is not on this switch")]
    NoPort,
    /// The desired state does not describe the segment, or it is refused itself.
    #[error("is for segment {0}, which is unknown")]
    NoSegment(Vni),
    /// The desired state does not describe the VRF, or it is refused itself.
    #[error("is for VRF {0}, which is unknown")]
    NoVrf(VrfName),
    /// The desired state does not describe the policy, or it is refused itself.
    #[error("names policy {0}, which is unknown")]
    NoPolicy(PolicyName),
    /// A neighbour has no route map for one direction.
    #[error("has no route map for each direction")]
    NoFilter,
    /// The import of a tenant's neighbour permits routes without a check of prefix and AS path.
    #[error("imports routes by {0}, which does not check both prefix and AS path of each")]
    OpenImport(PolicyName),
    /// A neighbour's port is in another place.
    #[error("is on a port that is not in its VRF")]
    NotBound,
    /// A rule is of the other address family.
    #[error("has a prefix of the other address family")]
    WrongFamily,
    /// The name is not one of the agent's.
    #[error("has a name that is not ours: Vrf and a number, or MM-…")]
    NotManaged,
    /// Another object has the same VLAN, VNI or table.
    #[error("has the {number} of {by}")]
    Taken {
        /// The number with its kind.
        number: String,
        /// The object that keeps it.
        by: Box<SwitchObject>,
    },
    /// FRR cannot have it as it is desired.
    #[error("cannot be in FRR: {0}")]
    Inexpressible(RoutingError),
    /// The value is one that only a broken switch has.
    #[error("is desired in a broken state")]
    Broken,
}

impl fmt::Display for SwitchObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => write!(f, "port {port}"),
            Self::Segment(vni) => write!(f, "segment {vni}"),
            Self::Gateway(vni) => write!(f, "gateway of segment {vni}"),
            Self::Vrf(vrf) => write!(f, "VRF {vrf}"),
            Self::PrefixList(PrefixListId { is_v6, name }) => {
                let family = if *is_v6 { "IPv6" } else { "IPv4" };
                write!(f, "{family} prefix list {name}")
            }
            Self::AsPathList(name) => write!(f, "as-path list {name}"),
            Self::RouteMap(name) => write!(f, "route map {name}"),
            Self::Bgp => f.write_str("BGP"),
            Self::BgpVrf(vrf) => write!(f, "BGP of VRF {vrf}"),
            Self::Neighbour { vrf: None, port } => write!(f, "neighbour {port}"),
            Self::Neighbour {
                vrf: Some(vrf),
                port,
            } => write!(f, "neighbour {port} in VRF {vrf}"),
            Self::Vtep => f.write_str("loopback"),
            Self::RoutingRules => f.write_str("routing rules"),
            Self::PacketFilter => f.write_str("packet filter"),
            Self::VxlanFilter(port) => write!(f, "VXLAN filter of port {port}"),
        }
    }
}
