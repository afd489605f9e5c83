use agents_nos::model::{Membership, PortName, RouteMatch};
use agents_nos::{Capability, SwitchModel, Vni, fit};
use proto_mesh::{
    Gateway, NETWORK_PREFIXES_MAX, NetworkFilter, PORT_PREFIXES_MAX, PortFilter, PortIntent,
    PortPlace, Segment, SwitchDesired, Vrf,
};
use proto_types::Asn;

use crate::config::{BgpConfig, Config};
use crate::intent::intent;

fn config(bgp: Option<BgpConfig>) -> Config {
    Config {
        nos: crate::config::SwitchOs::default(),
        redis: None,
        rack: "r1".into(),
        room: String::new(),
        management_ip: [10, 90, 0, 11].into(),
        vtep: [10, 91, 0, 11].into(),
        ports: vec!["swp*".into()],
        uplinks: Vec::new(),
        uplink_vteps: Vec::new(),
        relay: None,
        gateways: vec![[10, 91, 0, 1].into()],
        drift: crate::config::DriftPolicy::Heal,
        bgp,
        self_update: None,
        control: Vec::new(),
    }
}

fn bgp() -> Option<BgpConfig> {
    Some(BgpConfig {
        asn: 4_200_000_011,
        spines: vec!["swp31".into()],
        underlay: vec!["10.91.0.0/24".parse().unwrap()],
        ..BgpConfig::default()
    })
}

fn port(name: &str, vni: u32, place: PortPlace, filter: Option<PortFilter>) -> PortIntent {
    PortIntent {
        name: name.into(),
        vni,
        admin_up: true,
        place: place.into(),
        filter,
        ..PortIntent::default()
    }
}

fn filter(vnis: &[u32]) -> PortFilter {
    PortFilter {
        asn: 4_210_000_001,
        prefixes_v4: vec!["10.0.0.0/22".into()],
        prefixes_v6: vec!["2001:db8::/48".into()],
        vnis: vnis.into(),
        networks: Vec::new(),
    }
}

/// The filter of a firewall with its tunnel end, whose networks control knows.
fn firewall(networks: &[(u32, &[&str], &[&str])]) -> PortFilter {
    let texts = |prefixes: &[&str]| prefixes.iter().map(ToString::to_string).collect();
    let entries = networks
        .iter()
        .map(|(vni, routes, prefixes)| NetworkFilter {
            vni: *vni,
            routes: texts(routes),
            prefixes: texts(prefixes),
        });
    let vnis = networks.iter().map(|(vni, ..)| *vni);
    PortFilter {
        prefixes_v4: vec!["10.91.0.77/32".into()],
        prefixes_v6: Vec::new(),
        networks: entries.collect(),
        ..filter(&vnis.collect::<Vec<_>>())
    }
}

fn vrf(vni: u32) -> Vrf {
    Vrf {
        vni,
        name: format!("Vrf{vni}"),
        table: 1_000_000 + vni,
    }
}

fn desired(ports: Vec<PortIntent>) -> SwitchDesired {
    let provisioning = Segment {
        vni: 4000,
        provisioning: true,
        ..Segment::default()
    };
    SwitchDesired {
        ports,
        segments: vec![provisioning],
        vrfs: vec![vrf(27)],
        ..SwitchDesired::default()
    }
}

fn leaf() -> SwitchDesired {
    desired(vec![
        port("swp1", 4000, PortPlace::Unspecified, None),
        port("swp2", 27, PortPlace::Routed, Some(filter(&[]))),
        port("swp3", 27, PortPlace::Underlay, Some(filter(&[27, 100]))),
        port("swp4", 27, PortPlace::Routed, None),
    ])
}

/// The conditions of the rules of a route map.
fn rules(model: &SwitchModel, map: &str) -> Vec<Vec<String>> {
    let mut maps = model.policies.route_maps.iter();
    let (_, map) = maps.find(|(name, _)| name.as_ref() == map).unwrap();
    let condition = |found: &RouteMatch| match found {
        RouteMatch::Prefix(id) => {
            let list = &model.policies.prefix_lists[id];
            let rules = list.rules.iter();
            let rules = rules.map(|rule| format!("{} le {}", rule.prefix(), rule.le()));
            rules.collect::<Vec<_>>().join(",")
        }
        RouteMatch::AsPath(name) => {
            let origins = model.policies.as_path_lists[name].origins();
            let origins = origins.iter().map(|asn| format!("as {}", asn.0));
            origins.collect::<Vec<_>>().join(",")
        }
        RouteMatch::Evpn(vni) => format!("vni {vni}"),
        RouteMatch::EvpnOnly(vni) => format!("vni {vni} alone"),
        RouteMatch::EvpnPrefix => "prefix".to_owned(),
        RouteMatch::TunnelEnd(address) => format!("to {address}"),
    };
    let words = map.rules().values().map(|rule| {
        let denied = (!rule.permits).then(|| "deny".to_owned());
        let last = rule.is_last_resort.then(|| "last resort".to_owned());
        let conditions = rule.matches.iter().map(condition);
        let bare = rule.clears_communities.then(|| "bare".to_owned());
        let conditions = denied.into_iter().chain(conditions);
        conditions.chain(last).chain(bare)
    });
    words.map(Iterator::collect).collect()
}

#[test]
fn a_leaf_of_an_evpn_partition() {
    let (model, problems) = intent(&leaf(), &config(bgp()));
    assert_eq!(problems, Vec::<String>::new());
    let place = |port: &str| model.ports[port].membership.clone();
    let (name, made) = model.vrfs.iter().next().unwrap();
    assert_eq!((name.as_ref(), made.l3_vni), ("Vrf27", Vni::new(27).ok()));
    assert_eq!(made.table.get(), 1_000_027);
    assert!(place("swp1").segment().is_some());
    assert_eq!(place("swp2"), Membership::Routed(name.clone()));
    assert_eq!(place("swp3"), Membership::Underlay);
    assert_eq!(place("swp4"), Membership::Routed(name.clone()));
    assert_eq!(place("swp31"), Membership::Underlay);

    let of = |port: &str| {
        let found = model.neighbour_on(&PortName::new(port).unwrap());
        found.map(|(vrf, of)| (vrf.is_some(), of.remote_asn, of.has_evpn))
    };
    let machine = Some(Asn(4_210_000_001));
    assert_eq!(of("swp1"), None);
    assert_eq!(of("swp2"), Some((true, machine, false)));
    assert_eq!(of("swp3"), Some((false, machine, true)));
    assert_eq!(of("swp4"), None, "nothing may be announced there");
    assert_eq!(of("swp31"), Some((false, None, true)));

    assert!(model.packet_filter.is_in_place);
    let filters = model.packet_filter.firewalls.iter();
    let filters = filters.map(|(port, filter)| {
        let vnis = filter.vnis().iter().map(|vni| vni.get());
        let sources = filter.sources().iter().map(ToString::to_string);
        (port.to_string(), vnis.collect(), sources.collect())
    });
    let filters: Vec<(String, Vec<u32>, Vec<String>)> = filters.collect();
    let sources = ["10.0.0.0/22", "2001:db8::/48"].map(str::to_owned);
    let firewall = ("swp3".to_owned(), vec![27, 100], sources.to_vec());
    assert_eq!(filters, [firewall], "the spine's port may send everything");

    let own = [
        vec!["10.0.0.0/22 le 32", "as 4210000001", "bare"],
        vec!["2001:db8::/48 le 128", "as 4210000001", "bare"],
    ];
    let sent = [vec!["vni 27"], vec!["vni 100"]];
    let received = [vec!["vni 27 alone"], vec!["vni 100 alone"]];
    assert_eq!(rules(&model, "MM-swp2-in"), own);
    assert_eq!(rules(&model, "MM-swp2-out"), [Vec::<String>::new()]);
    assert_eq!(
        rules(&model, "MM-swp3-in"),
        [&own[..], &received[..]].concat()
    );
    let ends = [vec!["10.91.0.0/24 le 32"], vec![""]];
    assert_eq!(
        rules(&model, "MM-swp3-out"),
        [&ends[..], &sent[..]].concat()
    );
}

/// FRR compares all of a firewall's routes but the prefix.
#[test]
fn a_firewall_announces_prefixes_over_its_own_tunnel_as_the_last_resort() {
    let networks: &[(u32, &[&str], &[&str])] = &[
        (27, &["0.0.0.0/0"], &["192.0.2.0/24"]),
        (100, &["10.0.0.0/8"], &["192.0.2.7/32"]),
        (101, &[], &[]),
    ];
    let port = port("swp3", 27, PortPlace::Underlay, Some(firewall(networks)));
    let (model, problems) = intent(&desired(vec![port]), &config(bgp()));
    assert_eq!(problems, Vec::<String>::new());
    let permitted = |vni: u32| {
        let vni = format!("vni {vni} alone");
        let end = "to 10.91.0.77";
        let words = ["as 4210000001", &vni, "prefix", end, "last resort"];
        words.map(str::to_owned).to_vec()
    };
    let denied = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected = [permitted(27), permitted(100), denied(&["deny", "vni 101"])];
    let found = rules(&model, "MM-swp3-in");
    assert_eq!(found[2..], expected, "after its own addresses");
    let neighbour = model.neighbour_on(&PortName::new("swp3").unwrap()).unwrap();
    assert!(neighbour.1.has_evpn);
}

/// A firewall with such a filter has no session.
#[test]
fn nonsense_of_a_firewalls_networks_is_a_problem() {
    let many = vec!["192.0.2.0/24"; NETWORK_PREFIXES_MAX + 1];
    type Network<'a> = (u32, &'a [&'a str], &'a [&'a str]);
    let networks: &[&[Network<'_>]] = &[
        &[(27, &["192.0.2.1/24"], &[])],
        &[(27, &[], &["192.000.2.0/24"])],
        &[(27, &[], &["2001:db8:0::/48"])],
        &[(27, &[], &["0.0.0.0/0"])],
        &[(27, &[], &["::/0"])],
        &[(27, &[], &many)],
        &[(27, &[], &[]), (27, &[], &[])],
        &[(0, &[], &[])],
    ];
    let mut filters: Vec<PortFilter> = networks.iter().map(|of| firewall(of)).collect();
    filters.push(PortFilter {
        vnis: vec![28],
        ..firewall(&[(27, &[], &[])])
    });
    filters.push(PortFilter {
        prefixes_v4: (1..6).map(|n| format!("10.91.0.{n}/32")).collect(),
        ..firewall(&[(27, &[], &["192.0.2.0/24"])])
    });
    for filter in filters {
        let port = port("swp3", 27, PortPlace::Underlay, Some(filter.clone()));
        let (model, problems) = intent(&desired(vec![port]), &config(bgp()));
        let of_session = problems.iter().filter(|text| text.contains("session"));
        assert_eq!(of_session.count(), 1, "{problems:?} {filter:?}");
        assert!(!model.bgp.unwrap().underlay.contains_key("swp3"));
    }
}

/// A drained leaf would keep a server that has a route to a single host from it alone.
#[test]
fn servers_get_no_routes_to_hosts_that_are_behind_both_leaves() {
    let mut leaf = leaf();
    let addresses = [
        "10.1.0.0/24",
        "169.254.1.1/32",
        "fe80::1/64",
        "2001:db8:1::/64",
    ];
    leaf.segments.push(Segment {
        vni: 271,
        gateway: Some(Gateway {
            vrf: 27,
            addresses: addresses.map(str::to_owned).into(),
        }),
        ..Segment::default()
    });
    let (model, problems) = intent(&leaf, &config(bgp()));
    assert_eq!(problems, Vec::<String>::new());
    let expected = [
        vec!["deny", "10.1.0.0/25 le 32,10.1.0.128/25 le 32"],
        vec![
            "deny",
            "2001:db8:1::/65 le 128,2001:db8:1:0:8000::/65 le 128",
        ],
        vec![],
    ];
    assert_eq!(rules(&model, "MM-swp2-out"), expected);
}

/// The planner leaves nothing out: each session is bound to its place and has its policies.
#[test]
fn a_switch_that_can_route_takes_all_of_it() {
    let (model, _) = intent(&leaf(), &config(bgp()));
    let observed = SwitchModel {
        ports: model.ports.clone(),
        ..SwitchModel::default()
    };
    let fitted = fit(&observed, &model, Capability::ALL);
    assert_eq!(fitted.problems, vec![]);
    assert_eq!(fitted.model.bgp, model.bgp);
    assert_eq!(fitted.model.policies, model.policies);
}

#[test]
fn without_bgp_a_routed_port_is_a_problem_and_isolated() {
    let (model, problems) = intent(&leaf(), &config(None));
    assert_eq!(problems.len(), 3, "{problems:?}");
    for name in ["swp2", "swp3", "swp4"] {
        assert_eq!(model.ports[name].membership, Membership::Quarantine);
    }
    assert!(model.ports["swp1"].membership.segment().is_some());
    assert_eq!(model.bgp, None);
    assert!(model.policies.route_maps.is_empty());
}

/// A port of the underlay that faces machines and has no filter may send nothing.
#[test]
fn a_firewall_without_a_filter_sends_nothing() {
    let open = PortFilter {
        prefixes_v4: vec!["0.0.0.0/0".into()],
        ..filter(&[27])
    };
    for (filter, problems_of) in [(None, 0), (Some(open), 1)] {
        let leaf = desired(vec![port("swp3", 27, PortPlace::Underlay, filter)]);
        let (model, problems) = intent(&leaf, &config(bgp()));
        assert_eq!(problems.len(), problems_of, "{problems:?}");
        let filter = &model.packet_filter.firewalls["swp3"];
        assert!(filter.vnis().is_empty() && filter.sources().is_empty());
    }
}

/// Each is one problem, and leaves the other ports as they are.
#[test]
fn nonsense_of_one_port_is_its_problem_alone() {
    let other_version = PortFilter {
        prefixes_v4: vec!["2001:db8::/48".into()],
        ..filter(&[])
    };
    let no_prefix = PortFilter {
        prefixes_v4: vec!["10.0.0.0/22 permit any".into()],
        ..filter(&[])
    };
    let too_many = PortFilter {
        prefixes_v4: vec!["10.0.0.0/22".into(); PORT_PREFIXES_MAX + 1],
        ..filter(&[])
    };
    let reserved = PortFilter {
        asn: 0,
        ..filter(&[])
    };
    for refused in [other_version, no_prefix, too_many, reserved, filter(&[27])] {
        let bad = port("swp5", 27, PortPlace::Routed, Some(refused));
        let mut leaf = leaf();
        leaf.ports.push(bad);
        let (model, problems) = intent(&leaf, &config(bgp()));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("swp5"), "{problems:?}");
        let sessions = model.bgp.unwrap().vrfs.into_values().next().unwrap();
        let ports: Vec<_> = sessions.keys().map(PortName::to_string).collect();
        assert_eq!(ports, ["swp2"]);
    }
    for (vni, place) in [(28, 1), (1 << 24, 1), (27, 3), (27, 9)] {
        let mut leaf = leaf();
        leaf.ports.push(PortIntent {
            place,
            ..port("swp5", vni, PortPlace::Unspecified, None)
        });
        let (model, problems) = intent(&leaf, &config(bgp()));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(model.ports["swp5"].membership, Membership::Quarantine);
    }
}

#[test]
fn a_vrf_has_the_name_of_its_vni_and_a_table_of_its_own() {
    let renamed = Vrf {
        name: "Vrf28".into(),
        ..vrf(27)
    };
    let main_table = Vrf {
        table: 254,
        ..vrf(27)
    };
    for refused in [renamed, main_table, vrf(0)] {
        let desired = SwitchDesired {
            vrfs: vec![refused],
            ..leaf()
        };
        let (model, problems) = intent(&desired, &config(bgp()));
        assert_eq!(problems.len(), 3, "the VRF and its two ports: {problems:?}");
        assert!(model.vrfs.is_empty());
        assert_eq!(model.ports["swp2"].membership, Membership::Quarantine);
    }
}
