//! Random models as configurations of FRR, and back.

use agents_nos::SwitchModel;
use agents_nos::frr::{Routing, RoutingError, RuleFault, parse, render};
use agents_nos::model::PrefixRule;
use proptest::prelude::*;

use crate::fixture::{Build, import_map, list_id, neighbour, policy, port, tenant, vni, vrf};
use crate::random::{Kind, any_state, observable};

/// A random state with both families and lengths, whose neighbours have ports and filters of
/// ours: somebody else's are not in FRR's part of the model.
fn ours() -> impl Strategy<Value = SwitchModel> {
    let lists = prop::collection::vec((any::<bool>(), 0_u8..=24, 24_u8..=32), 0..5);
    let asns = prop::option::of(4_210_000_001_u32..4_210_000_009);
    let parts = (any_state(Kind::Observed).prop_map(observable), lists, asns);
    parts.prop_map(|(mut state, lists, asn)| {
        for (is_v6, length, le) in lists {
            let prefix = if is_v6 { "2001:db8::/32" } else { "10.0.0.0/8" };
            let prefix: ipnet::IpNet = prefix.parse().unwrap();
            let length = length.max(prefix.prefix_len());
            let prefix = ipnet::IpNet::new(prefix.addr(), length).unwrap();
            let rule = PrefixRule::new(prefix, le.max(length)).unwrap();
            let all = &mut state.policies.prefix_lists;
            all.entry(list_id("MM-l", is_v6))
                .or_default()
                .rules
                .insert(rule);
        }
        state.policies.route_maps.retain(|_, map| {
            let mut matches = map.matches();
            matches.all(|found| {
                !format!("{found:?}").contains("THEIRS") && !format!("{found:?}").contains("PATHS")
            })
        });
        let Some(bgp) = &mut state.bgp else {
            return state;
        };
        bgp.is_intact = true;
        for of in bgp.vrfs.values_mut().chain([&mut bgp.underlay]) {
            for neighbour in of.values_mut() {
                neighbour.remote_asn = asn.map(proto_types::Asn);
                for map in [&mut neighbour.import, &mut neighbour.export] {
                    map.take_if(|map| !map.is_managed());
                }
            }
        }
        state
    })
}

proptest! {
    #[test]
    fn a_model_is_read_back_from_frr(state in ours()) {
        let wanted = Routing::of(&state);
        let config = wanted.to_frr().unwrap();
        prop_assert_eq!(&Routing::from_frr(&config), &wanted);
        let shown = parse(&render(&config));
        prop_assert_eq!(&shown.config, &config);
        prop_assert!(shown.foreign.is_empty(), "{:?}", shown.foreign);
    }
}

#[test]
fn a_leaf_with_a_tenant_is_written_as_frr_shows_it() {
    let state = tenant().change(|state| {
        let bgp = state.bgp.as_mut().unwrap();
        let mut spine = neighbour();
        spine.has_evpn = true;
        bgp.underlay.insert(port("p9"), spine);
    });
    let text = render(&Routing::of(&state.0).to_frr().unwrap());
    let expected = include_str!("leaf.conf");
    assert_eq!(text, expected, "{text}");
}

/// The prefix in an EVPN route is a tenant's, also one that looks like the underlay's.
#[test]
fn rules_for_evpn_routes_are_apart_from_those_for_prefixes() {
    let state = tenant().change(|state| {
        let own = import_map("MM-list", "MM-paths").rules()[&10].clone();
        let evpn = agents_nos::model::RouteRule {
            permits: true,
            matches: [agents_nos::model::RouteMatch::EvpnOnly(vni(27))].into(),
            is_last_resort: false,
            clears_communities: false,
        };
        let map = agents_nos::model::RouteMap::new([own, evpn]).unwrap();
        state.policies.route_maps.insert(policy("MM-in"), map);
        let mut firewall = neighbour();
        firewall.has_evpn = true;
        let bgp = state.bgp.as_mut().unwrap();
        bgp.underlay.insert(port("p9"), firewall);
    });
    let wanted = Routing::of(&state.0);
    let config = wanted.to_frr().unwrap();
    let text = render(&config);
    let (maps, all) = (
        text.split("route-map "),
        "  neighbor p9 route-map MM-in in\n",
    );
    let of = |name: &str| {
        let mut maps = maps.clone();
        maps.find(|map| map.starts_with(name)).unwrap().to_owned()
    };
    assert!(!of("MM-in permit").contains("evpn"), "{text}");
    let evpn = of("MM-in-evpn permit");
    assert!(
        evpn.contains(" match evpn vni 27\n") && !evpn.contains("prefix-list"),
        "{text}"
    );
    assert_eq!(text.matches(all).count(), 2, "{text}");
    assert!(
        text.contains("  neighbor p9 route-map MM-in-evpn in\n"),
        "{text}"
    );
    let targets = "bgp extcommunity-list expanded MM-vni-27 seq 5 permit ^(RT:[0-9.]+:27_)*";
    assert!(
        evpn.contains(" match extcommunity MM-vni-27\n") && text.contains(targets),
        "{text}"
    );
    assert_eq!(Routing::from_frr(&config), wanted);
    for (was, becomes) in [
        // EVPN routes are judged by the other map.
        (
            "neighbor p9 route-map MM-in-evpn in",
            "neighbor p9 route-map MM-in in",
        ),
        (" match extcommunity MM-vni-27\n", ""),
        ("MM-vni-27 seq 5 permit ^", "MM-vni-27 seq 5 permit "),
        (
            "bgp extcommunity-list",
            "bgp extcommunity-list expanded MM-vni-27 seq 4 permit .*\nbgp extcommunity-list",
        ),
    ] {
        let seen = Routing::from_frr(&parse(&text.replace(was, becomes)).config);
        assert!(!seen.bgp.unwrap().is_intact, "{was} becomes {becomes}");
    }
}

/// Each change by hand is seen, and no object is taken for another one.
#[test]
fn what_the_model_does_not_name_makes_bgp_not_intact() {
    let text = include_str!("leaf.conf");
    for (was, becomes) in [
        (" neighbor p1 timers 2 8\n", ""),
        (
            " neighbor p1 interface remote-as external\n",
            " neighbor p1 interface remote-as internal\n",
        ),
        (
            "  neighbor p1 maximum-prefix 4096\n",
            "  neighbor p1 maximum-prefix 9\n",
        ),
        (" bgp bestpath as-path multipath-relax\n", ""),
        (
            " bgp ebgp-requires-policy\n",
            " no bgp ebgp-requires-policy\n",
        ),
        ("  advertise-all-vni\n", ""),
        ("  redistribute connected\n", ""),
        ("  advertise ipv6 unicast\n", ""),
        ("ip prefix-list MM-list seq 4294967295 deny any\n", ""),
        (" match interface lo\n", ""),
        ("ip router-id 10.0.0.11\n", ""),
        ("zebra zapi-packets 1\n", ""),
        ("zebra work-queue 0\n", ""),
        ("zebra nexthop-group keep 1\n", ""),
        ("^4210000001(_4210000001)*$", ".*"),
        ("seq 4210000001 permit", "seq 4210000001 deny"),
        (
            "route-map MM-out permit 10\n",
            "route-map MM-out permit 10\n set local-preference 7\n",
        ),
        ("permit 10.0.0.0/8 le 32", "permit 10.0.0.0/8 ge 9"),
    ] {
        assert!(text.contains(was), "{was}");
        let seen = Routing::from_frr(&parse(&text.replace(was, becomes)).config);
        assert!(!seen.bgp.unwrap().is_intact, "{was:?} becomes {becomes:?}");
    }
    assert!(
        Routing::from_frr(&parse(text).config)
            .bgp
            .unwrap()
            .is_intact
    );
}

#[test]
fn a_neighbour_without_one_filter_for_all_families_has_none() {
    let text = include_str!("leaf.conf");
    let open = text.replacen("  neighbor p9 route-map MM-in in\n", "", 1);
    let seen = Routing::from_frr(&parse(&open).config).bgp.unwrap();
    let spine = &seen.underlay[&port("p9")];
    assert_eq!(
        (&spine.import, &spine.export),
        (&None, &Some(policy("MM-out")))
    );
}

#[test]
fn what_frr_cannot_have_is_refused() {
    let refusal = |state: Build| Routing::of(&state.0).to_frr().unwrap_err();
    let on_number = tenant().change(|state| {
        let bgp = state.bgp.as_mut().unwrap();
        let of = bgp.vrfs.get_mut(&vrf("Vrf27")).unwrap();
        of.insert(port("4x"), neighbour());
    });
    assert_eq!(refusal(on_number), RoutingError::Interface(port("4x")));
    let twice = tenant().change(|state| {
        let map = import_map("MM-list", "MM-paths");
        let mut rule = map.rules()[&10].clone();
        rule.matches
            .insert(agents_nos::model::RouteMatch::Evpn(vni(1)));
        rule.matches
            .insert(agents_nos::model::RouteMatch::Evpn(vni(2)));
        let map = agents_nos::model::RouteMap::new([rule]).unwrap();
        state.policies.route_maps.insert(policy("MM-in"), map);
    });
    let rule = RoutingError::Rule {
        map: policy("MM-in"),
        sequence: 10,
        fault: RuleFault::Repeated,
    };
    assert_eq!(refusal(twice), rule);
    let reserved = tenant().change(|state| {
        let map = import_map("MM-list", "MM-paths");
        state.policies.route_maps.insert(policy("MM-LOOPBACK"), map);
    });
    assert_eq!(refusal(reserved), RoutingError::Name(policy("MM-LOOPBACK")));
}
