//! Random configurations. Names are few, so that two of them have much in common.

use std::collections::{BTreeMap, BTreeSet};

use agents_nos::Vni;
use agents_nos::frr::{
    Action, AsPathKey, AsPathRegex, AsPathRule, BgpInstance, BgpVrf, CommunityKey, CommunityKind,
    CommunityRegex, CommunityRule, Description, FrrConfig, Neighbour, ObjectName, PeerFamily,
    PeerGroup, PeerSettings, PerFamily, PerIp, PrefixEntry, PrefixListKey, PrefixRule,
    Redistribute, Remote, RemoteAs, RouteMapEntry, RouteMapKey, Timers,
};
use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::sample::{asn, name, port, vrf};

/// A sequence of configurations, always the same.
pub(crate) fn configurations(count: usize) -> Vec<FrrConfig> {
    let mut runner = TestRunner::deterministic();
    (0..count)
        .map(|_| config().new_tree(&mut runner).unwrap().current())
        .collect()
}

fn object(kind: &'static str) -> impl Strategy<Value = ObjectName> {
    (1..4u8).prop_map(move |n| name(&format!("{kind}{n}")))
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![Just(Action::Permit), Just(Action::Deny)]
}

fn prefix_entry() -> impl Strategy<Value = PrefixEntry> {
    let prefix = prop_oneof![
        (0..4u8, 0..=32u8).prop_map(|(n, len)| format!("10.{n}.0.0/{len}")),
        (0..4u8, 0..=128u8).prop_map(|(n, len)| format!("2001:db8:{n}::/{len}")),
    ];
    (object("list"), prefix, 0..200u8, 0..200u8).prop_map(|(list, prefix, a, b)| {
        let prefix: ipnet::IpNet = prefix.parse().unwrap();
        let rule = PrefixRule::range(prefix, a, b).unwrap_or_else(|| {
            if a % 2 == 0 {
                PrefixRule::exact(prefix)
            } else {
                PrefixRule::or_longer(prefix)
            }
        });
        PrefixEntry { list, rule }
    })
}

fn as_paths() -> impl Strategy<Value = BTreeMap<AsPathKey, AsPathRule>> {
    let key = (object("path"), 1..30u32).prop_map(|(list, sequence)| AsPathKey { list, sequence });
    let regex = prop_oneof![Just("^$"), Just(".*"), Just("^65000_"), Just("_(1)_")]
        .prop_filter_map("allowed", |text| AsPathRegex::new(text).ok());
    let rule = (action(), regex).prop_map(|(action, regex)| AsPathRule { action, regex });
    btree_map(key, rule, 0..5).prop_map(|mut rules| {
        let mut seen = Vec::new();
        rules.retain(|key: &AsPathKey, rule| {
            let new = !seen.contains(&(key.list.clone(), rule.regex.clone()));
            seen.push((key.list.clone(), rule.regex.clone()));
            new
        });
        rules
    })
}

fn communities() -> impl Strategy<Value = BTreeMap<CommunityKey, CommunityRule>> {
    let key =
        (object("ext"), 1..30u32).prop_map(|(list, sequence)| CommunityKey { list, sequence });
    let regex = prop_oneof![Just("^ET:8$"), Just(".*"), Just("^(RT:[0-9.]+:7_)*$")]
        .prop_filter_map("allowed", |text| CommunityRegex::new(text).ok());
    let rule = (action(), regex).prop_map(|(action, regex)| CommunityRule { action, regex });
    btree_map(key, rule, 0..5).prop_map(|mut rules| {
        let mut seen = Vec::new();
        rules.retain(|key: &CommunityKey, rule| {
            let new = !seen.contains(&(key.list.clone(), rule.regex.clone()));
            seen.push((key.list.clone(), rule.regex.clone()));
            new
        });
        rules
    })
}

fn route_maps() -> impl Strategy<Value = BTreeMap<RouteMapKey, RouteMapEntry>> {
    let key = (object("map"), 1..5u16).prop_map(|(map, n)| RouteMapKey {
        map,
        sequence: n * 10,
    });
    let entry = (
        action(),
        option::of(object("list")),
        option::of(object("list")),
        (option::of(object("path")), option::of(object("ext"))),
        option::of(1..4u8),
        option::of(1..9u32),
        option::of(any::<u32>()),
        (any::<[bool; 5]>(), option::of(1..4u8)),
    );
    let entry = entry.prop_map(|(action, v4, v6, path, interface, vni, preference, evpn)| {
        let mut entry = RouteMapEntry::new(action);
        entry.match_ipv4 = v4;
        entry.match_ipv6 = v6;
        (entry.match_as_path, entry.match_communities) = path;
        entry.match_interface = interface.map(|n| port(&format!("eth{n}")));
        entry.match_vni = vni.map(|n| Vni::new(n).unwrap());
        entry.local_preference = preference;
        let (flags, next_hop) = evpn;
        let [is_prefix, is_last_resort, cleared @ ..] = flags;
        entry.match_evpn_prefix = is_prefix;
        entry.is_last_resort = is_last_resort;
        let kinds = CommunityKind::ALL.into_iter().zip(cleared);
        entry.cleared = kinds.filter_map(|(kind, is)| is.then_some(kind)).collect();
        entry.match_next_hop = next_hop.map(|n| [10, 0, 0, n].into());
        entry
    });
    btree_map(key, entry, 0..8)
}

fn remote_as() -> impl Strategy<Value = RemoteAs> {
    prop_oneof![
        Just(RemoteAs::External),
        Just(RemoteAs::Internal),
        (1..9u32).prop_map(|n| RemoteAs::Number(asn(4_210_000_000 + n)))
    ]
}

/// The AS of a group. FRR keeps `ebgp-multihop 255` for a group that was of its own AS before; the
/// back-ends have no groups.
fn group_as() -> impl Strategy<Value = RemoteAs> {
    prop_oneof![
        Just(RemoteAs::External),
        (1..9u32).prop_map(|n| RemoteAs::Number(asn(4_210_000_000 + n)))
    ]
}

fn peer_family() -> impl Strategy<Value = PeerFamily> {
    let maps = (option::of(object("map")), option::of(object("map")));
    let rest = (
        any::<bool>(),
        option::of(1..=10u8),
        option::of(1..100_000u32),
    );
    (maps, rest).prop_map(|((route_map_in, route_map_out), rest)| PeerFamily {
        activate: rest.0,
        allowas_in: rest.1,
        maximum_prefix: rest.2,
        route_map_in,
        route_map_out,
    })
}

fn settings() -> impl Strategy<Value = PeerSettings> {
    let description = prop_oneof![Just("machine 7"), Just("a/b@c:d_e.f-g")];
    let session = (
        option::of(description.prop_map(|text| Description::new(text).unwrap())),
        option::of((1..20u16, 3..100u16)),
        any::<bool>(),
        any::<bool>(),
    );
    let families = (peer_family(), peer_family(), any::<bool>());
    (session, families).prop_map(|((description, timers, shutdown, bfd), families)| {
        let (ipv4, ipv6, evpn) = families;
        let evpn = PeerFamily {
            activate: evpn,
            ..PeerFamily::default()
        };
        PeerSettings {
            description,
            timers: timers.and_then(|(keepalive, hold)| Timers::new(keepalive, hold)),
            shutdown,
            bfd,
            families: PerFamily { ipv4, ipv6, evpn },
        }
    })
}

fn redistribute() -> impl Strategy<Value = Redistribute> {
    prop_oneof![
        Just(Redistribute::Nothing),
        Just(Redistribute::Connected),
        object("map").prop_map(Redistribute::Filtered),
    ]
}

fn instance() -> impl Strategy<Value = BgpInstance> {
    let group = (option::of(group_as()), settings());
    let group = group.prop_map(|(remote_as, settings)| PeerGroup {
        remote_as,
        settings,
    });
    let joins = prop_oneof![
        object("group").prop_map(Remote::Group),
        remote_as().prop_map(Remote::As),
    ];
    let neighbour = (joins, settings());
    let neighbour = neighbour.prop_map(|(remote, settings)| Neighbour { remote, settings });
    let port = (1..6u8).prop_map(|n| port(&format!("swp{n}")));
    let options = (
        option::of((1..9u8).prop_map(|n| [10, 0, 0, n].into())),
        any::<[bool; 6]>(),
        (redistribute(), redistribute()),
        1..4u32,
    );
    let peers = (
        btree_map(object("group"), group, 0..3),
        btree_map(port, neighbour, 0..4),
    );
    (options, peers).prop_map(
        |((router_id, flags, redistribute, n), (groups, neighbours))| {
            let mut made = BgpInstance::new(asn(65_000 + n));
            made.router_id = router_id;
            made.ebgp_requires_policy = flags[0];
            made.multipath_relax = flags[1];
            made.graceful_shutdown = flags[2];
            made.advertise = PerIp {
                ipv4: flags[3],
                ipv6: flags[4],
            };
            made.advertise_all_vni = flags[5];
            made.redistribute = PerIp {
                ipv4: redistribute.0,
                ipv6: redistribute.1,
            };
            made.groups = groups;
            made.neighbours = neighbours;
            made
        },
    )
}

/// A configuration that [`FrrConfig::check`] accepts.
pub(crate) fn config() -> impl Strategy<Value = FrrConfig> {
    let filters = (
        btree_set(prefix_entry(), 0..12),
        as_paths(),
        route_maps(),
        communities(),
    );
    let vrfs = btree_map(1..5u32, 1..9u32, 0..4);
    let tenants = btree_map(1..5u32, instance(), 0..3);
    let default = option::weighted(0.9, instance());
    let id = option::of((1..9u8).prop_map(|n| [10, 9, 9, n].into()));
    let zebra = (id, any::<bool>());
    (filters, vrfs, default, tenants, zebra).prop_map(|(filters, vrfs, default, tenants, zebra)| {
        let mut made = FrrConfig {
            router_id: zebra.0,
            has_zebra_settings: zebra.1,
            prefixes: filters.0,
            as_paths: filters.1,
            communities: filters.3,
            route_maps: filters.2,
            ..FrrConfig::default()
        };
        let closes = |key: &PrefixListKey| !key.list.as_str().ends_with('3');
        let lists = made.prefixes.iter().map(PrefixEntry::key);
        made.closed = lists.filter(closes).collect();
        let mut taken = BTreeSet::new();
        for (number, vni) in vrfs {
            if taken.insert(vni) {
                made.vrfs.insert(vrf(number), Vni::new(vni).unwrap());
            }
        }
        made.bgp = tenants
            .into_iter()
            .map(|(number, instance)| (BgpVrf::Tenant(vrf(number)), instance))
            .chain(default.map(|instance| (BgpVrf::Default, instance)))
            .collect();
        mend(&mut made);
        made
    })
}

/// Takes away what refers to nothing, and what FRR would not show: settings that a group's
/// members have from it.
fn mend(config: &mut FrrConfig) {
    let maps: BTreeSet<ObjectName> = config.route_maps.keys().map(|k| k.map.clone()).collect();
    for (vrf, instance) in &mut config.bgp {
        instance.advertise_all_vni &= *vrf == BgpVrf::Default;
        for redistribute in [
            &mut instance.redistribute.ipv4,
            &mut instance.redistribute.ipv6,
        ] {
            if matches!(redistribute, Redistribute::Filtered(map) if !maps.contains(map)) {
                *redistribute = Redistribute::Nothing;
            }
        }
        let groups: BTreeSet<ObjectName> = instance.groups.keys().cloned().collect();
        for neighbour in instance.neighbours.values_mut() {
            match &neighbour.remote {
                Remote::Group(group) if groups.contains(group) => {
                    neighbour.settings = PeerSettings {
                        description: neighbour.settings.description.take(),
                        ..PeerSettings::default()
                    };
                }
                Remote::Group(_) => neighbour.remote = Remote::As(RemoteAs::External),
                Remote::As(_) => {}
            }
        }
        let groups = instance
            .groups
            .values_mut()
            .map(|group| &mut group.settings);
        let neighbours = instance.neighbours.values_mut();
        for settings in groups.chain(neighbours.map(|n| &mut n.settings)) {
            let families = &mut settings.families;
            for family in [&mut families.ipv4, &mut families.ipv6] {
                family.route_map_in.take_if(|map| !maps.contains(map));
                family.route_map_out.take_if(|map| !maps.contains(map));
            }
        }
    }
}
