//! The state of single objects in words.

use std::fmt::Display;
use std::fmt::Write as _;

use crate::model::{
    Bgp, BgpNeighbour, Gateway, Membership, Port, PrefixList, RouteMap, Segment, SwitchModel,
    Tunnel, Vrf, VxlanFilter,
};
use crate::problem::SwitchObject;

/// The text for an object that does not exist.
const MISSING: &str = "missing";
/// Parts of a list that a description names; further ones are counted.
const LISTED_MAX: usize = 4;

/// Describes one object of a state in a few words, for a report or a log. Equal descriptions do not
/// prove equal objects: long lists are cut.
#[must_use]
pub fn describe(object: &SwitchObject, model: &SwitchModel) -> String {
    let text = match object {
        SwitchObject::Port(name) => model.ports.get(name).map(port),
        SwitchObject::Segment(vni) => model.segments.get(vni).map(segment),
        SwitchObject::Gateway(vni) => {
            let segment = model.segments.get(vni);
            segment.and_then(|of| of.gateway.as_ref()).map(gateway)
        }
        SwitchObject::Vrf(name) => model.vrfs.get(name).map(vrf),
        SwitchObject::Bgp => model.bgp.as_ref().map(bgp),
        SwitchObject::BgpVrf(name) => {
            let bgp = model.bgp.as_ref();
            let of = bgp.and_then(|bgp| bgp.vrfs.get(name));
            of.map(|of| format!("{} neighbours", of.len()))
        }
        SwitchObject::Neighbour { vrf, port } => {
            let bgp = model.bgp.as_ref();
            let of = bgp.and_then(|bgp| bgp.neighbours(vrf.as_ref()));
            of.and_then(|of| of.get(port)).map(neighbour)
        }
        SwitchObject::PrefixList(id) => model.policies.prefix_lists.get(id).map(prefix_list),
        SwitchObject::AsPathList(name) => {
            let list = model.policies.as_path_lists.get(name);
            list.map(|list| listed("of AS ", list.origins().iter().map(|asn| asn.0)))
        }
        SwitchObject::RouteMap(name) => model.policies.route_maps.get(name).map(route_map),
        SwitchObject::Vtep => model.vtep.map(|address| address.to_string()),
        SwitchObject::PacketFilter => {
            let is_in_place = model.packet_filter.is_in_place;
            Some(
                if is_in_place {
                    "in place"
                } else {
                    "missing or changed"
                }
                .to_owned(),
            )
        }
        SwitchObject::VxlanFilter(port) => {
            let filters = &model.packet_filter.firewalls;
            filters.get(port).map(vxlan_filter)
        }
        SwitchObject::RoutingRules => Some(rules(model.is_l3mdev_first).to_owned()),
    };
    text.unwrap_or_else(|| MISSING.to_owned())
}

fn port(port: &Port) -> String {
    let mut out = match &port.membership {
        Membership::Quarantine => "quarantined".to_owned(),
        Membership::Segment { vni, is_private } => {
            let privacy = if *is_private { ", private" } else { "" };
            format!("in segment {vni}{privacy}")
        }
        Membership::Routed(vrf) => format!("in VRF {vrf}"),
        Membership::Underlay => "without a place".to_owned(),
        Membership::Foreign(device) if device.is_empty() => "in no segment or VRF".to_owned(),
        Membership::Foreign(device) => format!("in foreign device {device:?}"),
    };
    out.push_str(if port.admin_up { ", up" } else { ", down" });
    if let Some(mtu) = port.mtu {
        append(&mut out, format_args!(", MTU {mtu}"));
    }
    out
}

fn segment(segment: &Segment) -> String {
    let mut out = format!("MTU {}", segment.mtu);
    if let Some(vlan) = segment.vlan {
        append(&mut out, format_args!(", VLAN {vlan}"));
    }
    match segment.tunnel {
        Tunnel::Open => {}
        Tunnel::Private => out.push_str(", private tunnel"),
        Tunnel::Absent => out.push_str(", no tunnel"),
    }
    if !segment.is_intact {
        out.push_str(", broken");
    }
    if !segment.remotes.is_empty() {
        out.push_str(&listed(", floods to ", &segment.remotes));
    }
    out
}

fn gateway(gateway: &Gateway) -> String {
    format!(
        "{} in VRF {}",
        listed("", gateway.addresses()),
        gateway.vrf()
    )
}

fn vrf(vrf: &Vrf) -> String {
    let mut out = format!("table {}", vrf.table);
    if let Some(vni) = vrf.l3_vni {
        append(&mut out, format_args!(", VNI {vni}"));
    }
    if !vrf.has_unreachable_default {
        out.push_str(", open to the underlay");
    }
    out
}

fn bgp(bgp: &Bgp) -> String {
    let drained = if bgp.is_draining { ", drained" } else { "" };
    format!("AS {}, router id {}{drained}", bgp.asn().0, bgp.router_id())
}

fn neighbour(neighbour: &BgpNeighbour) -> String {
    let mut out = match neighbour.remote_asn {
        Some(asn) => format!("AS {}", asn.0),
        None => "any AS".to_owned(),
    };
    for (direction, map) in [("in", &neighbour.import), ("out", &neighbour.export)] {
        match map {
            Some(map) => append(&mut out, format_args!(", {direction} {map}")),
            None => append(&mut out, format_args!(", {direction} unfiltered")),
        }
    }
    if neighbour.has_evpn {
        out.push_str(", EVPN");
    }
    out
}

fn prefix_list(list: &PrefixList) -> String {
    let prefixes = list.rules.iter();
    let prefixes = prefixes.map(|rule| format!("{} le {}", rule.prefix(), rule.le()));
    listed("permits ", prefixes)
}

fn route_map(map: &RouteMap) -> String {
    let permits = map.rules().values().filter(|rule| rule.permits).count();
    let matches = map.matches().count();
    format!("{permits} permit rules with {matches} matches")
}

fn vxlan_filter(filter: &VxlanFilter) -> String {
    let vnis = listed("VNIs ", filter.vnis());
    format!("{vnis}{}", listed(", from ", filter.sources()))
}

fn rules(is_l3mdev_first: bool) -> &'static str {
    if is_l3mdev_first {
        "VRFs before local addresses"
    } else {
        "local addresses before VRFs"
    }
}

fn listed<T: Display>(intro: &str, parts: impl IntoIterator<Item = T>) -> String {
    let mut parts = parts.into_iter();
    let shown: Vec<String> = parts
        .by_ref()
        .take(LISTED_MAX)
        .map(|p| p.to_string())
        .collect();
    let more = parts.count();
    let mut out = format!("{intro}{}", shown.join(", "));
    if shown.is_empty() {
        out.push_str("nothing");
    }
    if more > 0 {
        append(&mut out, format_args!(" and {more} more"));
    }
    out
}

fn append(out: &mut String, part: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    out.write_fmt(part).ok();
}
