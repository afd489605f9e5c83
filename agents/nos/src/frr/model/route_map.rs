//! Entries of route-maps.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::Vni;

use super::action::Action;
use super::community::CommunityKind;
use super::interface_name::InterfaceName;
use super::name::ObjectName;

/// Place of an entry: the route-map and the entry's number in it. The first entry that matches
/// decides; a route that none matches is dropped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteMapKey {
    /// Name of the route-map.
    pub map: ObjectName,
    /// Number of the entry, 1 to 65535.
    pub sequence: u16,
}

/// An entry of a route-map. A route matches if every condition that is `Some` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMapEntry {
    /// Verdict on a route that matches.
    pub action: Action,
    /// The IPv4 prefix is permitted by this prefix list.
    pub match_ipv4: Option<ObjectName>,
    /// The IPv6 prefix is permitted by this prefix list.
    pub match_ipv6: Option<ObjectName>,
    /// The AS path is permitted by this AS-path list.
    pub match_as_path: Option<ObjectName>,
    /// The route goes out through this interface.
    pub match_interface: Option<InterfaceName>,
    /// The EVPN route is of this VNI.
    pub match_vni: Option<Vni>,
    /// The EVPN route is of an IP prefix (type 5).
    pub match_evpn_prefix: bool,
    /// The next hop is this address. It is compared in EVPN routes as well; a prefix list of next
    /// hops matches no EVPN route.
    pub match_next_hop: Option<Ipv4Addr>,
    /// The extended communities are permitted by this list.
    pub match_communities: Option<ObjectName>,
    /// Local preference that the route gets.
    pub local_preference: Option<u32>,
    /// `true` lengthens the AS path by ten numbers, the neighbour's own: no path through the fabric
    /// is that long, so that every switch prefers any other path to the prefix.
    pub is_last_resort: bool,
    /// Kinds of communities that are taken off the route.
    pub cleared: BTreeSet<CommunityKind>,
}

impl RouteMapEntry {
    /// An entry without conditions: every route matches.
    #[must_use]
    pub fn new(action: Action) -> Self {
        Self {
            action,
            match_ipv4: None,
            match_ipv6: None,
            match_as_path: None,
            match_interface: None,
            match_vni: None,
            match_evpn_prefix: false,
            match_next_hop: None,
            match_communities: None,
            local_preference: None,
            is_last_resort: false,
            cleared: BTreeSet::new(),
        }
    }
}
