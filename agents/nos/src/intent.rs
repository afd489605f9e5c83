//! The intended state of a switch.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::vni::Vni;

/// The intended state of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// Ports by name. A port that is missing here is isolated.
    pub ports: BTreeMap<String, PortIntent>,
    /// Segments on this switch. A segment that is missing here is removed.
    pub segments: BTreeMap<Vni, SegmentIntent>,
}

/// The intended state of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortIntent {
    /// The port's segment. `None` isolates the port.
    pub segment: Option<Vni>,
    /// `true` if the port is administratively up.
    pub admin_up: bool,
}

/// The intended state of a segment on this switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentIntent {
    /// Ethernet MTU inside the segment, bytes.
    pub mtu: u32,
    /// Tunnel ends of the other switches and routers of this segment.
    pub remotes: BTreeSet<IpAddr>,
}
