//! Objects that come, and what enters them.

use super::kept::Kept;
use crate::model::{Bgp, Membership, Port, PortName, Segment};
use crate::step::Step;
use crate::vni::Vni;

pub(super) fn plan(change: &Kept<'_>, steps: &mut Vec<Step>) {
    if let Some(address) = change.target.vtep
        && change.observed.vtep != Some(address)
    {
        steps.push(Step::SetVtep { address });
    }
    vrfs(change, steps);
    for (vni, wanted) in &change.target.segments {
        segment(change, *vni, wanted, steps);
    }
    filters(change, steps);
    policies(change, steps);
    bgp(change, steps);
    ports_enter(change, steps);
    neighbours_enter(change, steps);
    ports_come_up(change, steps);
}

fn vrfs(change: &Kept<'_>, steps: &mut Vec<Step>) {
    if change.target.is_l3mdev_first && !change.observed.is_l3mdev_first {
        steps.push(Step::PutL3mdevFirst);
    }
    for (name, vrf) in &change.target.vrfs {
        if change.observed.vrfs.get(name) != Some(vrf) {
            steps.push(Step::EnsureVrf {
                name: name.clone(),
                vrf: *vrf,
            });
        }
    }
}

fn segment(change: &Kept<'_>, vni: Vni, wanted: &Segment, steps: &mut Vec<Step>) {
    let seen = change.observed.segments.get(&vni);
    // A repair may make a new tunnel device without remotes, and a new bridge without gateway, so
    // that both are set again.
    let seen = seen.filter(|seen| change.segment(vni) && seen.is_intact);
    if seen.is_none_or(|seen| (seen.mtu, seen.tunnel) != (wanted.mtu, wanted.tunnel)) {
        steps.push(Step::EnsureSegment {
            vni,
            vlan: wanted.vlan,
            mtu: wanted.mtu,
            tunnel: wanted.tunnel,
        });
    }
    let is_new = |remote: &&_| !seen.is_some_and(|seen| seen.remotes.contains(*remote));
    let remotes = wanted.remotes.iter().filter(is_new);
    steps.extend(remotes.map(|remote| Step::AddRemote {
        vni,
        remote: *remote,
    }));
    let stays = change.gateway(vni) && seen.is_some_and(|seen| seen.gateway == wanted.gateway);
    if wanted.gateway.is_some() && !stays {
        steps.push(Step::SetGateway {
            vni,
            gateway: wanted.gateway.clone(),
        });
    }
}

/// Before ports enter the underlay.
fn filters(change: &Kept<'_>, steps: &mut Vec<Step>) {
    let (seen, wanted) = (&change.observed.packet_filter, &change.target.packet_filter);
    if wanted.is_in_place && !seen.is_in_place {
        steps.push(Step::EnsurePacketFilter);
    }
    for (port, filter) in &wanted.firewalls {
        if seen.firewalls.get(port) != Some(filter) {
            steps.push(Step::SetVxlanFilter {
                port: port.clone(),
                filter: filter.clone(),
            });
        }
    }
}

/// Lists before the route maps that name them.
fn policies(change: &Kept<'_>, steps: &mut Vec<Step>) {
    let (seen, wanted) = (&change.observed.policies, &change.target.policies);
    for (id, list) in &wanted.prefix_lists {
        let known = seen.prefix_lists.get(id);
        if known.is_none() {
            steps.push(Step::EnsurePrefixList { list: id.clone() });
        }
        let is_new = |rule: &&_| !known.is_some_and(|known| known.rules.contains(*rule));
        let rules = list.rules.iter().filter(is_new);
        steps.extend(rules.map(|rule| Step::AddPrefix {
            list: id.clone(),
            rule: *rule,
        }));
    }
    for (name, list) in &wanted.as_path_lists {
        if seen.as_path_lists.get(name) != Some(list) {
            steps.push(Step::SetAsPathList {
                name: name.clone(),
                list: list.clone(),
            });
        }
    }
    for (name, map) in &wanted.route_maps {
        if seen.route_maps.get(name) != Some(map) {
            steps.push(Step::SetRouteMap {
                name: name.clone(),
                map: map.clone(),
            });
        }
    }
}

fn bgp(change: &Kept<'_>, steps: &mut Vec<Step>) {
    let Some(wanted) = &change.target.bgp else {
        return;
    };
    let seen = change.observed.bgp.as_ref().filter(|_| change.bgp());
    let fits = |seen: &Bgp| {
        seen.is_intact
            && seen.router_id() == wanted.router_id()
            && seen.is_draining == wanted.is_draining
    };
    if !seen.is_some_and(fits) {
        steps.push(Step::EnsureBgp {
            asn: wanted.asn(),
            router_id: wanted.router_id(),
            is_draining: wanted.is_draining,
        });
    }
    let new = wanted.vrfs.keys();
    let new = new.filter(|vrf| !change.instance(Some(*vrf)));
    steps.extend(new.map(|vrf| Step::EnsureBgpVrf { vrf: vrf.clone() }));
}

fn ports_enter(change: &Kept<'_>, steps: &mut Vec<Step>) {
    for (port, wanted) in &change.target.ports {
        let seen = change.observed.ports.get(port).and_then(|seen| seen.mtu);
        if let Some(mtu) = wanted.mtu.filter(|mtu| seen != Some(*mtu)) {
            steps.push(Step::SetMtu {
                port: port.clone(),
                mtu,
            });
        }
    }
    for (port, wanted) in &change.target.ports {
        if wanted.membership != Membership::Quarantine && !change.port(port) {
            steps.push(Step::Enter {
                port: port.clone(),
                place: wanted.membership.clone(),
            });
        }
    }
}

fn neighbours_enter(change: &Kept<'_>, steps: &mut Vec<Step>) {
    let seen = change.observed.bgp.as_ref();
    for (vrf, neighbours) in change.target.bgp.iter().flat_map(Bgp::instances) {
        let seen = seen.and_then(|seen| seen.neighbours(vrf));
        for (port, neighbour) in neighbours {
            let known = seen.and_then(|seen| seen.get(port));
            if !change.neighbour(vrf, port) || known != Some(neighbour) {
                steps.push(Step::SetNeighbour {
                    vrf: vrf.cloned(),
                    port: port.clone(),
                    neighbour: neighbour.clone(),
                });
            }
        }
    }
}

/// Ports to spines first: machines' ports attract traffic, which the leaf cannot carry without them.
fn ports_come_up(change: &Kept<'_>, steps: &mut Vec<Step>) {
    let comes_up = |(name, wanted): &(&PortName, &Port)| {
        let seen = change.observed.ports.get(*name);
        wanted.admin_up && seen.is_some_and(|seen| !seen.admin_up)
    };
    let coming = change.target.ports.iter().filter(comes_up);
    let (first, last): (Vec<_>, Vec<_>) =
        coming.partition(|(_, wanted)| wanted.membership == Membership::Underlay);
    for (port, _) in first.into_iter().chain(last) {
        let port = port.clone();
        steps.push(Step::SetAdmin { port, up: true });
    }
}
