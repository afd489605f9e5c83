//! The whole configuration that is ours.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::as_path::{AsPathKey, AsPathRule};
use super::community::{CommunityKey, CommunityRule};
use super::instance::BgpInstance;
use super::prefix::{PrefixEntry, PrefixListKey};
use super::route_map::{RouteMapEntry, RouteMapKey};
use super::vrf::{BgpVrf, VrfName};
use crate::Vni;

/// Everything of ours in a running FRR.
///
/// Canonical: two configurations with one meaning are equal. Everything is sorted, and what has
/// no content (a list without entries, a VRF without a VNI) cannot be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrrConfig {
    /// Router id of every daemon. `None` means that FRR chooses.
    pub router_id: Option<Ipv4Addr>,
    /// `true` if zebra has the settings that avoid what 8.4.4 loses (`docs/reference/frr.md`): each
    /// message of bgpd is carried out before the next one is read, against a lost neighbour of an
    /// EVPN route that bgpd withdraws and announces in one go; and it keeps no group of
    /// next hops that no route uses, against a cable that is not used again after it failed.
    pub has_zebra_settings: bool,
    /// VNIs by which the VRFs exchange routes with other switches (L3 VNI).
    pub vrfs: BTreeMap<VrfName, Vni>,
    /// BGP instances.
    pub bgp: BTreeMap<BgpVrf, BgpInstance>,
    /// Prefix lists of both families.
    pub prefixes: BTreeSet<PrefixEntry>,
    /// Prefix lists that end with an entry which denies everything. FRR forgets a list without
    /// entries: only such an end says that an empty list is there.
    pub closed: BTreeSet<PrefixListKey>,
    /// AS-path access lists.
    pub as_paths: BTreeMap<AsPathKey, AsPathRule>,
    /// Extended-community lists (expanded).
    pub communities: BTreeMap<CommunityKey, CommunityRule>,
    /// Route-maps.
    pub route_maps: BTreeMap<RouteMapKey, RouteMapEntry>,
}
