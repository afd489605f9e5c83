//! Peers whose routes are judged again.

use std::fmt;

use super::model::{BgpVrf, InterfaceName, ObjectName};

/// Routes of a peer that FRR must judge again, since a filter's content changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refresh {
    /// VRF of the instance.
    pub vrf: BgpVrf,
    /// The peer.
    pub peer: Peer,
    /// The routes.
    pub direction: Direction,
}

/// A neighbour or a group of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// Every member of a group.
    Group(ObjectName),
    /// A neighbour.
    Neighbour(InterfaceName),
}

/// Direction of routes, seen from us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Received from the peer.
    In,
    /// Sent to the peer.
    Out,
}

impl Refresh {
    /// The command, outside of configuration mode. Routes that stay allowed are not withdrawn.
    #[must_use]
    pub fn command(&self) -> String {
        let vrf = match self.vrf {
            BgpVrf::Default => String::new(),
            BgpVrf::Tenant(name) => format!("vrf {name} "),
        };
        format!("clear bgp {vrf}{} soft {}", self.peer, self.direction)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(name) => write!(f, "peer-group {name}"),
            Self::Neighbour(name) => name.fmt(f),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::In => "in",
            Self::Out => "out",
        })
    }
}
