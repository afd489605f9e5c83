//! Random states of a small switch. Few names and numbers, so that objects meet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use agents_nos::model::{
    Bgp, BgpNeighbour, BgpNeighbours, Mtu, PacketFilter, Policies, Port, PrefixList, Segment,
    Table, Tunnel, Vlan, Vrf, VxlanFilter,
};
use agents_nos::{Membership, SwitchModel, Vni};
use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use proto_types::Asn;

use crate::fixture::{
    export_map, gateway, import_map, list_id, neighbour, paths, policy, port, rule, vni, vrf,
};

const PORTS: [&str; 4] = ["p1", "p2", "p3", "p4"];
const VNIS: [u32; 4] = [1, 2, 3, 4];
const VRFS: [&str; 3] = ["Vrf1", "Vrf2", "mgmt"];
const LISTS: [&str; 3] = ["MM-l", "MM-m", "THEIRS"];
const PATHS: [&str; 2] = ["MM-p", "PATHS"];
const MAPS: [&str; 4] = ["MM-in", "MM-out", "MM-x", "MAP"];

/// The kind of a random state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As a broken switch may be: neighbours without filter, segments that are not intact, names
    /// that nothing has.
    Observed,
    /// As control may send it, with references that lead nowhere.
    Desired,
}

fn membership(kind: Kind) -> BoxedStrategy<Membership> {
    let segment = (prop::sample::select(&VNIS[..]), any::<bool>()).prop_map(|(of, is_private)| {
        Membership::Segment {
            vni: vni(of),
            is_private,
        }
    });
    let routed = prop::sample::select(&VRFS[..]).prop_map(|name| Membership::Routed(vrf(name)));
    let foreign = match kind {
        Kind::Observed => Membership::Foreign("br0".into()),
        Kind::Desired => Membership::Quarantine,
    };
    prop_oneof![
        1 => Just(Membership::Quarantine),
        4 => segment,
        4 => routed,
        1 => Just(Membership::Underlay),
        1 => Just(foreign),
    ]
    .boxed()
}

fn mtu() -> impl Strategy<Value = Mtu> {
    prop::sample::select(vec![1500, 9000]).prop_map(Mtu::nearest)
}

fn one_port(kind: Kind) -> impl Strategy<Value = Port> {
    let parts = (any::<bool>(), option::of(mtu()), membership(kind));
    parts.prop_map(|(admin_up, mtu, membership)| Port {
        admin_up,
        mtu,
        membership,
    })
}

fn segment(kind: Kind) -> impl Strategy<Value = Segment> {
    let vlan = option::of((10_u16..13).prop_map(|number| Vlan::new(number).unwrap()));
    let remotes = btree_set((1_u8..4).prop_map(|last| [10, 0, 0, last].into()), 0..3);
    let addresses = prop::sample::select(vec!["10.1.0.1/24", "10.2.0.1/24"]);
    let gateway = (prop::sample::select(&VRFS[..]), addresses).prop_map(|(v, a)| gateway(v, a));
    let is_intact = prop::bool::weighted(if kind == Kind::Observed { 0.8 } else { 0.99 });
    let tunnel = prop_oneof![
        4 => Just(Tunnel::Open),
        1 => Just(Tunnel::Private),
        1 => Just(Tunnel::Absent),
    ];
    let parts = (vlan, mtu(), tunnel, remotes, option::of(gateway), is_intact);
    parts.prop_map(|(vlan, mtu, tunnel, remotes, gateway, is_intact)| Segment {
        vlan,
        mtu,
        remotes: match tunnel {
            Tunnel::Absent => BTreeSet::new(),
            _ => remotes,
        },
        tunnel,
        gateway,
        is_intact,
    })
}

fn one_vrf(kind: Kind) -> impl Strategy<Value = Vrf> {
    // L3 VNIs overlap the VNIs of segments.
    let l3_vni = option::of((3_u32..8).prop_map(vni));
    let table = (1000_u32..1003).prop_map(|number| Table::new(number).unwrap());
    let guarded = prop::bool::weighted(if kind == Kind::Observed { 0.8 } else { 0.99 });
    let intact = guarded;
    let parts = (l3_vni, table, guarded, intact);
    parts.prop_map(|(l3_vni, table, has_unreachable_default, is_intact)| Vrf {
        l3_vni,
        table,
        has_unreachable_default,
        is_intact,
    })
}

fn policies() -> impl Strategy<Value = Policies> {
    let prefixes = prop::sample::select(vec!["10.0.0.0/8", "192.0.2.0/24", "172.16.0.0/12"]);
    let list = btree_set(prefixes.prop_map(rule), 0..3).prop_map(|rules| PrefixList { rules });
    let ids = prop::sample::select(&LISTS[..]).prop_map(|name| list_id(name, false));
    let names = |of: &'static [&'static str]| prop::sample::select(of).prop_map(policy);
    let origins = prop::sample::select(vec![4_210_000_001, 4_210_000_002]).prop_map(paths);
    let import = (
        prop::sample::select(&LISTS[..]),
        prop::sample::select(&PATHS[..]),
    );
    let map = prop_oneof![
        3 => import.prop_map(|(list, paths)| import_map(list, paths)),
        1 => Just(export_map()),
    ];
    let parts = (
        btree_map(ids, list, 0..4),
        btree_map(names(&PATHS), origins, 0..3),
        btree_map(names(&MAPS), map, 0..5),
    );
    parts.prop_map(|(prefix_lists, as_path_lists, route_maps)| Policies {
        prefix_lists,
        as_path_lists,
        route_maps,
    })
}

fn neighbours(kind: Kind) -> impl Strategy<Value = BgpNeighbours> {
    let ports = prop_oneof![
        4 => prop::sample::select(&PORTS[..]).prop_map(port),
        1 => Just(port("eth7")),
    ];
    let weight = if kind == Kind::Observed { 0.8 } else { 0.97 };
    let filter =
        || prop::option::weighted(weight, prop::sample::select(&MAPS[..]).prop_map(policy));
    let parts = (filter(), filter(), any::<bool>());
    let neighbour = parts.prop_map(|(import, export, has_evpn)| BgpNeighbour {
        remote_asn: None,
        import,
        export,
        has_evpn,
    });
    btree_map(ports, neighbour, 0..4)
}

fn bgp(kind: Kind) -> impl Strategy<Value = Bgp> {
    let asn = prop::sample::select(vec![65_001_u32, 65_001, 65_001, 65_002]).prop_map(Asn);
    let router_id = prop::sample::select(vec![1_u8, 1, 2]);
    let names = prop::sample::select(&VRFS[..]).prop_map(vrf);
    let vrfs = btree_map(names, neighbours(kind), 0..4);
    let is_intact = prop::bool::weighted(if kind == Kind::Observed { 0.8 } else { 0.99 });
    let is_draining = prop::bool::weighted(0.2);
    let parts = (
        asn,
        router_id,
        neighbours(kind),
        vrfs,
        (is_intact, is_draining),
    );
    parts.prop_map(|(asn, last, underlay, vrfs, (is_intact, is_draining))| {
        let router_id = Ipv4Addr::new(10, 0, 0, last);
        let mut bgp = Bgp::new(asn, router_id).unwrap();
        bgp.is_intact = is_intact;
        bgp.is_draining = is_draining;
        bgp.underlay = underlay;
        bgp.vrfs = vrfs;
        bgp
    })
}

/// A random state, with references that may lead nowhere and numbers that may be taken.
fn packet_filter() -> impl Strategy<Value = PacketFilter> {
    let names = prop::sample::select(&PORTS[..]).prop_map(port);
    let vnis = btree_set(prop::sample::select(&VNIS[..]).prop_map(vni), 0..3);
    let filters = vnis.prop_map(|vnis| VxlanFilter::new(vnis, []).unwrap());
    let parts = (any::<bool>(), btree_map(names, filters, 0..3));
    parts.prop_map(|(is_in_place, firewalls)| PacketFilter {
        is_in_place,
        firewalls,
    })
}

pub(crate) fn any_state(kind: Kind) -> impl Strategy<Value = SwitchModel> {
    let names = prop::sample::select(&PORTS[..]).prop_map(port);
    let vnis = prop::sample::select(&VNIS[..]).prop_map(vni);
    let vrf_names = prop::sample::select(&VRFS[..]).prop_map(vrf);
    let is_bound = prop::bool::weighted(0.7);
    let vtep = option::of((1_u8..3).prop_map(|last| [10, 9, 0, last].into()));
    let parts = (
        btree_map(names, one_port(kind), 2..5),
        btree_map(vnis, segment(kind), 2..5),
        btree_map(vrf_names, one_vrf(kind), 1..4),
        policies(),
        prop::option::weighted(0.85, bgp(kind)),
        (vtep, any::<bool>(), is_bound, packet_filter()),
    );
    parts.prop_map(|(ports, segments, vrfs, policies, bgp, globals)| {
        let (vtep, is_l3mdev_first, is_bound, packet_filter) = globals;
        let state = SwitchModel {
            ports,
            segments,
            vrfs,
            policies,
            bgp,
            vtep,
            is_l3mdev_first,
            packet_filter,
        };
        if is_bound { bound(state) } else { state }
    })
}

/// Gives each routed port a neighbour with filters that exist, which chance seldom does.
fn bound(mut state: SwitchModel) -> SwitchModel {
    let Some(bgp) = &mut state.bgp else {
        return state;
    };
    let policies = &mut state.policies;
    let lists = &mut policies.prefix_lists;
    lists.entry(list_id("MM-l", false)).or_default();
    let origins = &mut policies.as_path_lists;
    origins
        .entry(policy("MM-p"))
        .or_insert_with(|| paths(4_210_000_001));
    let maps = &mut policies.route_maps;
    maps.insert(policy("MM-in"), import_map("MM-l", "MM-p"));
    maps.insert(policy("MM-out"), export_map());
    for (name, port) in &state.ports {
        match &port.membership {
            Membership::Underlay => {
                bgp.underlay.insert(name.clone(), neighbour());
            }
            Membership::Routed(vrf) if state.vrfs.contains_key(vrf) => {
                let of = bgp.vrfs.entry(vrf.clone()).or_default();
                of.insert(name.clone(), neighbour());
            }
            _ => {}
        }
    }
    state
}

/// A state that a switch can really be in: no two objects with one number, and nothing in an object that
/// does not exist.
pub(crate) fn observable(mut state: SwitchModel) -> SwitchModel {
    let mut vrfs: BTreeMap<_, Vrf> = BTreeMap::new();
    for (name, vrf) in std::mem::take(&mut state.vrfs) {
        if !vrfs.values().any(|other| other.clashes(&vrf)) {
            vrfs.insert(name, vrf);
        }
    }
    let is_l3 = |vni: &Vni| vrfs.values().any(|vrf| vrf.l3_vni == Some(*vni));
    let mut segments: BTreeMap<_, Segment> = BTreeMap::new();
    for (vni, mut segment) in std::mem::take(&mut state.segments) {
        let mut others = segments.values();
        let taken = others.any(|other| other.vlan.is_some() && other.vlan == segment.vlan);
        if taken || is_l3(&vni) {
            continue;
        }
        segment.gateway = segment.gateway.filter(|g| vrfs.contains_key(g.vrf()));
        segments.insert(vni, segment);
    }
    for port in state.ports.values_mut() {
        let exists = match &port.membership {
            Membership::Segment { vni, .. } => segments.contains_key(vni),
            Membership::Routed(vrf) => vrfs.contains_key(vrf),
            _ => true,
        };
        if !exists {
            port.membership = Membership::Underlay;
        }
    }
    if let Some(bgp) = &mut state.bgp {
        bgp.vrfs.retain(|vrf, _| vrfs.contains_key(vrf));
    }
    SwitchModel {
        segments,
        vrfs,
        ..state
    }
}

/// A random state that a switch can be in, and a desired one. They have random parts in common.
pub(crate) fn states() -> impl Strategy<Value = (SwitchModel, SwitchModel)> {
    let observed = any_state(Kind::Observed).prop_map(observable);
    let common = prop::collection::vec(any::<bool>(), 5);
    let parts = (observed, any_state(Kind::Desired), common);
    parts.prop_map(|(from, mut to, common)| {
        if common[0] {
            to.segments.clone_from(&from.segments);
        }
        if common[1] {
            to.vrfs.clone_from(&from.vrfs);
        }
        if common[2] {
            to.policies.clone_from(&from.policies);
        }
        if common[3] {
            to.bgp.clone_from(&from.bgp);
        }
        if common[4] {
            to.ports.extend(from.ports.clone());
        }
        (from, to)
    })
}
