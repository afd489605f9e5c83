use crate::model::{Membership, PortName, SwitchModel};
use crate::step::Step;

/// `true` if a switch in this state has the effect of a step: [`crate::interpret`] would change
/// nothing.
#[must_use]
pub fn is_in_effect(step: &Step, seen: &SwitchModel) -> bool {
    match step {
        Step::SetAdmin { port, up } => seen.ports.get(port).is_some_and(|p| p.admin_up == *up),
        Step::SetMtu { port, mtu } => seen.ports.get(port).is_some_and(|p| p.mtu == Some(*mtu)),
        Step::Quarantine { port } => is_in(seen, port, &Membership::Quarantine),
        Step::Enter { port, place } => is_in(seen, port, place),
        Step::EnsureSegment {
            vni,
            vlan,
            mtu,
            tunnel,
        } => {
            let segment = seen.segments.get(vni);
            segment.is_some_and(|s| {
                s.is_intact && s.vlan == *vlan && s.mtu == *mtu && s.tunnel == *tunnel
            })
        }
        Step::RemoveSegment { vni } => !seen.segments.contains_key(vni),
        Step::AddRemote { vni, remote } => {
            let segment = seen.segments.get(vni);
            segment.is_some_and(|s| s.remotes.contains(remote))
        }
        Step::RemoveRemote { vni, remote } => {
            let segment = seen.segments.get(vni);
            segment.is_none_or(|s| !s.remotes.contains(remote))
        }
        Step::SetGateway { vni, gateway } => match seen.segments.get(vni) {
            Some(segment) => segment.gateway == *gateway,
            None => gateway.is_none(),
        },
        Step::PutL3mdevFirst => seen.is_l3mdev_first,
        Step::EnsureVrf { name, vrf } => seen.vrfs.get(name) == Some(vrf),
        Step::RemoveVrf { name } => !seen.vrfs.contains_key(name),
        Step::SetVtep { address } => seen.vtep == Some(*address),
        Step::EnsurePacketFilter => seen.packet_filter.is_in_place,
        Step::SetVxlanFilter { port, filter } => {
            let filters = &seen.packet_filter;
            filters.is_in_place && filters.firewalls.get(port) == Some(filter)
        }
        Step::RemoveVxlanFilter { port } => !seen.packet_filter.firewalls.contains_key(port),
        bgp => is_bgp_in_effect(bgp, seen),
    }
}

fn is_in(seen: &SwitchModel, port: &PortName, place: &Membership) -> bool {
    let port = seen.ports.get(port);
    port.is_some_and(|port| port.membership == *place)
}

fn is_bgp_in_effect(step: &Step, seen: &SwitchModel) -> bool {
    let bgp = seen.bgp.as_ref();
    let policies = &seen.policies;
    match step {
        Step::EnsureBgp {
            asn,
            router_id,
            is_draining,
        } => bgp.is_some_and(|bgp| {
            bgp.is_intact
                && bgp.asn() == *asn
                && bgp.router_id() == *router_id
                && bgp.is_draining == *is_draining
        }),
        Step::RemoveBgp => bgp.is_none(),
        Step::EnsureBgpVrf { vrf } => bgp.is_some_and(|bgp| bgp.vrfs.contains_key(vrf)),
        Step::RemoveBgpVrf { vrf } => bgp.is_none_or(|bgp| !bgp.vrfs.contains_key(vrf)),
        Step::SetNeighbour {
            vrf,
            port,
            neighbour,
        } => {
            let of = bgp.and_then(|bgp| bgp.neighbours(vrf.as_ref()));
            of.and_then(|of| of.get(port)) == Some(neighbour)
        }
        Step::RemoveNeighbour { vrf, port } => {
            let of = bgp.and_then(|bgp| bgp.neighbours(vrf.as_ref()));
            of.is_none_or(|of| !of.contains_key(port))
        }
        Step::EnsurePrefixList { list } => policies.prefix_lists.contains_key(list),
        Step::AddPrefix { list, rule } => {
            let list = policies.prefix_lists.get(list);
            list.is_some_and(|list| list.rules.contains(rule))
        }
        Step::RemovePrefix { list, rule } => {
            let list = policies.prefix_lists.get(list);
            list.is_none_or(|list| !list.rules.contains(rule))
        }
        Step::RemovePrefixList { list } => !policies.prefix_lists.contains_key(list),
        Step::SetAsPathList { name, list } => policies.as_path_lists.get(name) == Some(list),
        Step::RemoveAsPathList { name } => !policies.as_path_lists.contains_key(name),
        Step::SetRouteMap { name, map } => policies.route_maps.get(name) == Some(map),
        Step::RemoveRouteMap { name } => !policies.route_maps.contains_key(name),
        _ => false,
    }
}
