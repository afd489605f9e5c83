//! The observed state of a switch.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto_wire_lldp::Mac;

use crate::place::PortPlace;
use crate::vni::Vni;

/// The observed state of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchState {
    /// Ports by name.
    pub ports: BTreeMap<String, PortObserved>,
    /// Segments that have a device on this switch.
    pub segments: BTreeMap<Vni, SegmentObserved>,
}

/// The observed state of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortObserved {
    /// MAC address.
    pub mac: Mac,
    /// `true` if the port is administratively up.
    pub admin_up: bool,
    /// `true` if the port also has a carrier.
    pub oper_up: bool,
    /// The port's place.
    pub place: PortPlace,
}

/// The observed state of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentObserved {
    /// Ethernet MTU inside the segment, bytes.
    pub mtu: u32,
    /// Tunnel ends that the segment's broadcasts are sent to.
    pub remotes: BTreeSet<IpAddr>,
    /// `true` if every part exists, is up, and has our settings.
    pub intact: bool,
}
