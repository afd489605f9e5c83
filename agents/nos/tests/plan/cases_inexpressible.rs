//! Objects that FRR cannot have: each is a problem of its own, and holds up nothing else.

use agents_nos::frr::Routing;
use agents_nos::model::{Policies, PrefixList, RouteMap, RouteMatch, RouteRule};
use agents_nos::{Capability, Membership, SwitchModel, fit};
use proptest::prelude::*;
use proto_types::Asn;

use crate::fixture::{
    Build, export_map, import_map, list_id, neighbour, paths, policy, port, tenant, vni, vrf,
};
use crate::random::{observable, states};

/// Longest name that FRR takes: 63 bytes.
const LONG: &str = "MM-456789012345678901234567890123456789012345678901234567890123";

/// A change of a desired state.
type Change = fn(&mut SwitchModel);

fn rule(matches: &[RouteMatch]) -> RouteRule {
    RouteRule {
        permits: true,
        matches: matches.iter().cloned().collect(),
        is_last_resort: false,
        clears_communities: false,
    }
}

fn prefix(is_v6: bool, name: &str) -> RouteMatch {
    RouteMatch::Prefix(list_id(name, is_v6))
}

fn evpn(number: u32) -> RouteMatch {
    RouteMatch::Evpn(vni(number))
}

/// Sets a route map with these rules, numbered as given.
fn set_map(state: &mut SwitchModel, name: &str, rules: &[(u16, &[RouteMatch])]) {
    let rules = rules.iter().map(|(number, found)| (*number, rule(found)));
    let map = RouteMap::numbered(rules).unwrap();
    state.policies.route_maps.insert(policy(name), map);
}

/// Sets a neighbour on a port in the tenant's VRF.
fn set_neighbour(state: &mut SwitchModel, name: &str, asn: u32) {
    let mut made = neighbour();
    made.remote_asn = Some(Asn(asn));
    let bgp = state.bgp.as_mut().unwrap();
    let of = bgp.vrfs.get_mut(&vrf("Vrf27")).unwrap();
    of.insert(port(name), made);
}

/// Changes of a state that FRR could have, each with the problem that it is.
const CASES: &[(Change, &str)] = &[
    (
        |state| {
            let lists = &mut state.policies.prefix_lists;
            lists.insert(list_id("MM-LOOPBACK", false), PrefixList::default());
        },
        "IPv4 prefix list MM-LOOPBACK cannot be in FRR: policy MM-LOOPBACK has a name that is not \
         for models",
    ),
    (
        |state| {
            let lists = &mut state.policies.prefix_lists;
            lists.insert(list_id("MM-a-evpn", true), PrefixList::default());
        },
        "IPv6 prefix list MM-a-evpn cannot be in FRR: policy MM-a-evpn has a name that is not for \
         models",
    ),
    (
        |state| {
            let lists = &mut state.policies.as_path_lists;
            lists.insert(policy("MM-a-evpn"), paths(4_210_000_001));
        },
        "as-path list MM-a-evpn cannot be in FRR: policy MM-a-evpn has a name that is not for \
         models",
    ),
    (
        |state| {
            let maps = &mut state.policies.route_maps;
            maps.insert(policy("MM-LOOPBACK"), export_map());
        },
        "route map MM-LOOPBACK cannot be in FRR: policy MM-LOOPBACK has a name that is not for \
         models",
    ),
    (
        |state| {
            let maps = &mut state.policies.route_maps;
            maps.insert(policy("MM-a-evpn"), export_map());
        },
        "route map MM-a-evpn cannot be in FRR: policy MM-a-evpn has a name that is not for models",
    ),
    (
        |state| set_map(state, "MM-a", &[(0, &[])]),
        "route map MM-a cannot be in FRR: rule 0 of route map MM-a has a number below 1",
    ),
    (
        |state| {
            let lists = &mut state.policies.prefix_lists;
            lists.insert(list_id("MM-b", false), PrefixList::default());
            let two = [prefix(false, "MM-list"), prefix(false, "MM-b")];
            set_map(state, "MM-a", &[(10, &[]), (20, &two)]);
        },
        "route map MM-a cannot be in FRR: rule 20 of route map MM-a has two conditions of one kind",
    ),
    (
        |state| {
            let lists = &mut state.policies.as_path_lists;
            lists.insert(policy("MM-b"), paths(4_210_000_002));
            let two = ["MM-paths", "MM-b"].map(|name| RouteMatch::AsPath(policy(name)));
            set_map(state, "MM-a", &[(10, &two)]);
        },
        "route map MM-a cannot be in FRR: rule 10 of route map MM-a has two conditions of one kind",
    ),
    (
        |state| set_map(state, "MM-a", &[(10, &[]), (20, &[evpn(1), evpn(2)])]),
        "route map MM-a cannot be in FRR: rule 20 of route map MM-a has two conditions of one kind",
    ),
    (
        |state| {
            let mixed = [prefix(false, "MM-list"), evpn(1)];
            set_map(state, "MM-a", &[(10, &[]), (20, &mixed)]);
        },
        "route map MM-a cannot be in FRR: rule 20 of route map MM-a has a VNI and a prefix list",
    ),
    (
        |state| set_map(state, "MM-a", &[(10, &[evpn(1)]), (20, &[evpn(2)])]),
        "route map MM-a cannot be in FRR: every rule of route map MM-a is for EVPN routes",
    ),
    (
        |state| set_map(state, LONG, &[(10, &[]), (20, &[evpn(2)])]),
        "route map MM-456789012345678901234567890123456789012345678901234567890123 cannot be in \
         FRR: route map MM-456789012345678901234567890123456789012345678901234567890123 has rules \
         for EVPN routes and a name of more than 58 bytes",
    ),
    (
        |state| set_neighbour(state, "4x", 4_210_000_001),
        "neighbour 4x in VRF Vrf27 cannot be in FRR: FRR takes no neighbour on a port named 4x",
    ),
    (
        |state| set_neighbour(state, "p:1", 4_210_000_001),
        "neighbour p:1 in VRF Vrf27 cannot be in FRR: FRR takes no neighbour on a port named p:1",
    ),
    (
        |state| set_neighbour(state, "MM-p1", 4_210_000_001),
        "neighbour MM-p1 in VRF Vrf27 cannot be in FRR: FRR takes no neighbour on a port named \
         MM-p1",
    ),
    (
        |state| set_neighbour(state, "p1", 0),
        "neighbour p1 in VRF Vrf27 cannot be in FRR: 0 is no AS number",
    ),
];

/// Changes of a state at the edges of the cases, which FRR can have.
const FINE: &[Change] = &[
    |_| (),
    |state| set_map(state, LONG, &[(10, &[]), (u16::MAX, &[])]),
    |state| set_map(state, &LONG[..58], &[(10, &[]), (20, &[evpn(2)])]),
    |state| {
        let lists = &mut state.policies.prefix_lists;
        lists.insert(list_id("MM-list", true), PrefixList::default());
        let both = [prefix(false, "MM-list"), prefix(true, "MM-list")];
        set_map(state, "MM-a", &[(1, &both)]);
    },
    |state| {
        let as_path = RouteMatch::AsPath(policy("MM-paths"));
        set_map(state, "MM-a", &[(10, &[]), (20, &[as_path, evpn(2)])]);
    },
    |state| set_neighbour(state, "p1", u32::MAX),
    |state| set_neighbour(state, "p1.5", 1),
];

#[test]
fn what_frr_cannot_have_is_a_problem_of_its_object() {
    let from = Build::default().port("p1", Membership::Quarantine, true).0;
    for (change, problem) in CASES {
        let desired = tenant().change(change).0;
        let fitted = fit(&from, &desired, Capability::ALL);
        let problems: Vec<String> = fitted.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, [*problem]);
        Routing::of(&fitted.model).to_frr().unwrap();
        assert!(Routing::of(&desired).to_frr().is_err(), "{problem}");
    }
    for change in FINE {
        let desired = tenant().change(change).0;
        let fitted = fit(&from, &desired, Capability::ALL);
        assert_eq!(fitted.problems, []);
        let wanted = Routing::of(&fitted.model);
        let config = wanted.to_frr().unwrap();
        assert_eq!(Routing::from_frr(&config), wanted);
    }
}

/// A neighbour whose filter FRR cannot have is left out with it.
#[test]
fn a_session_goes_with_its_filter() {
    let from = Build::default().port("p1", Membership::Quarantine, true).0;
    let desired = tenant().change(|state| {
        let mut map = import_map("MM-list", "MM-paths").rules().clone();
        map.insert(0, rule(&[]));
        let map = RouteMap::numbered(map).unwrap();
        state.policies.route_maps.insert(policy("MM-in"), map);
    });
    let fitted = fit(&from, &desired.0, Capability::ALL);
    let problems: Vec<String> = fitted.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "route map MM-in cannot be in FRR: rule 0 of route map MM-in has a number below 1",
            "neighbour p1 in VRF Vrf27 names policy MM-in, which is unknown",
        ]
    );
}

proptest! {
    /// The fitted state of any desired one is one of FRR's, and is read back from it.
    #[test]
    fn a_fitted_state_can_be_said_to_frr(
        (mut from, mut to) in states(),
        changes in prop::collection::vec(prop::sample::select(CASES), 0..4),
    ) {
        // Objects of others are kept as they are observed, and none of them is in FRR.
        from.policies = Policies::default();
        from.bgp = None;
        let Build(mut base) = tenant();
        to.vrfs.append(&mut base.vrfs);
        to.policies.prefix_lists.append(&mut base.policies.prefix_lists);
        to.policies.as_path_lists.append(&mut base.policies.as_path_lists);
        to.policies.route_maps.append(&mut base.policies.route_maps);
        let mut bgp = base.bgp.unwrap();
        to.bgp.get_or_insert_with(|| bgp.clone()).vrfs.append(&mut bgp.vrfs);
        for (change, _) in changes {
            change(&mut to);
        }
        let wanted = Routing::of(&fit(&observable(from), &to, Capability::ALL).model);
        let config = wanted.to_frr();
        prop_assert!(config.is_ok(), "{:?}", config);
        let config = config.unwrap();
        prop_assert_eq!(config.check(), Ok(()));
        prop_assert_eq!(Routing::from_frr(&config), wanted);
    }
}
