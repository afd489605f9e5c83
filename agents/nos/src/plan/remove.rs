//! Objects that go once nobody is in them.

use super::kept::Kept;
use crate::step::Step;

/// Removes the objects that are in the way of new ones.
pub(super) fn plan_early(change: &Kept<'_>, steps: &mut Vec<Step>) {
    if let Some(bgp) = &change.observed.bgp {
        let ending = bgp.vrfs.keys().filter(|vrf| !change.instance(Some(*vrf)));
        steps.extend(ending.map(|vrf| Step::RemoveBgpVrf { vrf: vrf.clone() }));
        if !change.bgp() {
            steps.push(Step::RemoveBgp);
        }
    }
    for (vni, segment) in &change.observed.segments {
        if change.is_segment_in_the_way(*vni, segment) {
            steps.push(Step::RemoveSegment { vni: *vni });
        }
    }
    for (name, vrf) in &change.observed.vrfs {
        if change.is_vrf_in_the_way(name, vrf) {
            steps.push(Step::RemoveVrf { name: name.clone() });
        }
    }
}

/// Removes leftovers, each object before those that it uses.
pub(super) fn plan_late(change: &Kept<'_>, steps: &mut Vec<Step>) {
    let wanted = &change.target.packet_filter.firewalls;
    let filters = change.observed.packet_filter.firewalls.keys();
    let filters = filters.filter(|port| !wanted.contains_key(*port));
    steps.extend(filters.map(|port| Step::RemoveVxlanFilter { port: port.clone() }));
    let (seen, wanted) = (&change.observed.policies, &change.target.policies);
    let maps = seen.route_maps.keys();
    let maps = maps.filter(|name| !wanted.route_maps.contains_key(*name));
    steps.extend(maps.map(|name| Step::RemoveRouteMap { name: name.clone() }));
    let lists = seen.prefix_lists.keys();
    let lists = lists.filter(|id| !wanted.prefix_lists.contains_key(*id));
    steps.extend(lists.map(|id| Step::RemovePrefixList { list: id.clone() }));
    let lists = seen.as_path_lists.keys();
    let lists = lists.filter(|name| !wanted.as_path_lists.contains_key(*name));
    steps.extend(lists.map(|name| Step::RemoveAsPathList { name: name.clone() }));
    for (vni, segment) in &change.observed.segments {
        let is_wanted = change.target.segments.contains_key(vni);
        if !is_wanted && !change.is_segment_in_the_way(*vni, segment) {
            steps.push(Step::RemoveSegment { vni: *vni });
        }
    }
    for (name, vrf) in &change.observed.vrfs {
        let is_wanted = change.target.vrfs.contains_key(name);
        if !is_wanted && !change.is_vrf_in_the_way(name, vrf) {
            steps.push(Step::RemoveVrf { name: name.clone() });
        }
    }
}
