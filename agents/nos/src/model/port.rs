use super::names::VrfName;
use super::numbers::Mtu;
use crate::vni::Vni;

/// A front-panel port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// `true` if the port is administratively up.
    pub admin_up: bool,
    /// MTU. In a desired state `None` means that the port keeps its MTU; in an observed one it
    /// means an MTU out of range.
    pub mtu: Option<Mtu>,
    /// The place of the port.
    pub membership: Membership,
}

/// The place of a port: at most one tenant's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Membership {
    /// In nobody's place. The port forwards nothing and is routed nowhere, not even in the default
    /// VRF: a port without master would be.
    Quarantine,
    /// In the bridge of a segment.
    Segment {
        /// The segment.
        vni: Vni,
        /// `true` if the port reaches the ports of the segment that are not private, and no other
        /// private one.
        is_private: bool,
    },
    /// Routed in a VRF.
    Routed(VrfName),
    /// Routed in the default VRF: a link to a spine or a firewall. The observed place of a port
    /// without master.
    Underlay,
    /// In a device that is not ours, with this name. Only observed.
    Foreign(String),
}

impl Membership {
    /// The port's segment. `None` if it is in none.
    #[must_use]
    pub fn segment(&self) -> Option<Vni> {
        match self {
            Self::Segment { vni, .. } => Some(*vni),
            _ => None,
        }
    }
}
