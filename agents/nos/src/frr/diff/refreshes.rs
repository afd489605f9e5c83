//! Peers whose filters changed in content.

use std::collections::BTreeSet;

use super::Plan;
use crate::frr::model::{
    BgpVrf, Family, FrrConfig, ObjectName, PeerFamily, PeerSettings, RouteMapEntry,
};
use crate::frr::refresh::{Direction, Peer, Refresh};

/// Peers that stay, with a filter that stays and means something else now. FRR itself judges
/// again when a peer gets another filter.
pub(super) fn refreshes(plan: &Plan<'_>) -> Vec<Refresh> {
    let changed = Changed::new(plan.old, plan.new);
    if changed.maps.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (vrf, instance) in &plan.new.bgp {
        let Some(kept) = plan.kept(*vrf) else {
            continue;
        };
        for (name, group) in &instance.groups {
            if let Some(had) = kept.groups.get(name) {
                let peer = Peer::Group(name.clone());
                all.extend(changed.refreshes(*vrf, &peer, &had.settings, &group.settings));
            }
        }
        for (name, neighbour) in &instance.neighbours {
            if let Some(had) = plan.kept_neighbour(*vrf, name) {
                let peer = Peer::Neighbour(name.clone());
                all.extend(changed.refreshes(*vrf, &peer, &had.settings, &neighbour.settings));
            }
        }
    }
    all
}

/// Route-maps that mean something else than before.
struct Changed<'a> {
    maps: BTreeSet<&'a ObjectName>,
}

impl<'a> Changed<'a> {
    fn new(old: &'a FrrConfig, new: &'a FrrConfig) -> Self {
        let lists: BTreeSet<(bool, &ObjectName)> = old
            .prefixes
            .symmetric_difference(&new.prefixes)
            .map(|entry| (entry.is_ipv6(), &entry.list))
            .collect();
        let as_paths: BTreeSet<&ObjectName> = old
            .as_paths
            .iter()
            .filter(|(key, rule)| new.as_paths.get(key) != Some(rule))
            .chain(
                new.as_paths
                    .iter()
                    .filter(|(key, rule)| old.as_paths.get(key) != Some(rule)),
            )
            .map(|(key, _)| &key.list)
            .collect();
        let communities: BTreeSet<&ObjectName> = old
            .communities
            .iter()
            .filter(|(key, rule)| new.communities.get(key) != Some(rule))
            .chain(
                new.communities
                    .iter()
                    .filter(|(key, rule)| old.communities.get(key) != Some(rule)),
            )
            .map(|(key, _)| &key.list)
            .collect();
        let uses = |entry: &RouteMapEntry| {
            let lists_of = [(false, &entry.match_ipv4), (true, &entry.match_ipv6)];
            let list = |(ipv6, list): (bool, &Option<ObjectName>)| {
                list.as_ref()
                    .is_some_and(|name| lists.contains(&(ipv6, name)))
            };
            let path = entry.match_as_path.as_ref();
            let communities_of = entry.match_communities.as_ref();
            lists_of.into_iter().any(list)
                || path.is_some_and(|name| as_paths.contains(name))
                || communities_of.is_some_and(|name| communities.contains(name))
        };
        let differs = |one: &'a FrrConfig, other: &'a FrrConfig| {
            one.route_maps
                .iter()
                .filter(|(key, entry)| other.route_maps.get(key) != Some(*entry) || uses(entry))
                .map(|(key, _)| &key.map)
                .collect::<Vec<_>>()
        };
        let mut maps: BTreeSet<&ObjectName> = differs(old, new).into_iter().collect();
        maps.extend(differs(new, old));
        Self { maps }
    }

    /// The refreshes of a peer that had settings and has others now.
    fn refreshes(
        &self,
        vrf: BgpVrf,
        peer: &Peer,
        had: &PeerSettings,
        now: &PeerSettings,
    ) -> Vec<Refresh> {
        let mut all = Vec::new();
        for direction in [Direction::In, Direction::Out] {
            let stale = Family::ALL.iter().any(|family| {
                let map = map_of(now.families.of(*family), direction);
                let same = map == map_of(had.families.of(*family), direction);
                same && map.is_some_and(|map| self.maps.contains(map))
            });
            if stale {
                all.push(Refresh {
                    vrf,
                    peer: peer.clone(),
                    direction,
                });
            }
        }
        all
    }
}

fn map_of(of: &PeerFamily, direction: Direction) -> Option<&ObjectName> {
    match direction {
        Direction::In => of.route_map_in.as_ref(),
        Direction::Out => of.route_map_out.as_ref(),
    }
}
