//! Peer groups and neighbours.

use super::asn::RemoteAs;
use super::name::ObjectName;
use super::peer_settings::PeerSettings;

/// A peer group: what its members have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerGroup {
    /// Autonomous system of the members. `None` if each member says so.
    pub remote_as: Option<RemoteAs>,
    /// Settings of the members.
    pub settings: PeerSettings,
}

/// An unnumbered neighbour: whoever answers on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The neighbour's autonomous system or group.
    pub remote: Remote,
    /// Settings of its own. What a group sets already must not be repeated here: FRR would not
    /// show it.
    pub settings: PeerSettings,
}

/// Autonomous system of a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// As its peer group says.
    Group(ObjectName),
    /// Its own.
    As(RemoteAs),
}
