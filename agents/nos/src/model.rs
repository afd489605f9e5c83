use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;

use proto_wire_lldp::Mac;
use thiserror::Error;

/// Number of a segment on the wire: 24 bits, not zero (RFC 7348 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vni(NonZeroU32);

/// A number that no segment can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is not a VNI: 1 to 16777215")]
pub struct NameError(pub u32);

impl Vni {
    /// Largest VNI.
    pub const MAX: u32 = 0x00ff_ffff;

    /// # Errors
    /// Zero, or more than 24 bits.
    pub fn new(number: u32) -> Result<Self, NameError> {
        NonZeroU32::new(number)
            .filter(|n| n.get() <= Self::MAX)
            .map(Self)
            .ok_or(NameError(number))
    }

    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Vni {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a switch should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    pub ports: BTreeMap<String, PortIntent>,
    pub segments: BTreeMap<Vni, SegmentIntent>,
}

/// Where a port should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortIntent {
    /// `None` isolates the port.
    pub segment: Option<Vni>,
    pub admin_up: bool,
}

/// What a segment should be on this switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentIntent {
    /// Ethernet MTU inside the segment, bytes.
    pub mtu: u32,
    /// Tunnel ends of the others in this segment.
    pub remotes: BTreeSet<IpAddr>,
}

/// What a switch is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchState {
    pub ports: BTreeMap<String, PortObserved>,
    pub segments: BTreeMap<Vni, SegmentObserved>,
}

/// A port as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortObserved {
    pub mac: Mac,
    pub admin_up: bool,
    pub oper_up: bool,
    pub place: Place,
}

/// Where a port is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Isolated,
    Segment(Vni),
    /// In a device that is not ours, by name.
    Foreign(String),
}

/// A segment as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentObserved {
    pub mtu: u32,
    pub remotes: BTreeSet<IpAddr>,
    /// Every part is there, is up, and has the settings that we give it.
    pub intact: bool,
}
