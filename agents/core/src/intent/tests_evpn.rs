use agents_nos::fit;
use agents_nos::model::{Peer, PolicyName, PortName, RouteMatch, VrfName};
use proto_mesh::{PortNeighbour, PortPlace, SwitchBgp, Vrf};

use super::tests::{config, port, segment};
use super::*;
use crate::config::BgpConfig;

fn evpn_config() -> Config {
    Config {
        bgp: Some(BgpConfig {
            asn: 4_200_000_011,
            spines: vec!["swp31".into()],
        }),
        ..config()
    }
}

fn placed(name: &str, vni: u32, place: PortPlace, neighbour: Option<PortNeighbour>) -> PortIntent {
    PortIntent {
        place: place.into(),
        neighbour,
        ..port(name, vni)
    }
}

fn neighbour(prefixes: &[&str], vnis: &[u32]) -> Option<PortNeighbour> {
    Some(PortNeighbour {
        import_prefixes: prefixes.iter().map(|p| (*p).to_owned()).collect(),
        asns: vec![4_210_000_007],
        evpn_vnis: vnis.to_vec(),
    })
}

fn desired(ports: Vec<PortIntent>) -> SwitchDesired {
    SwitchDesired {
        fabric: FabricMode::Evpn.into(),
        bgp: Some(SwitchBgp::default()),
        vrfs: vec![Vrf {
            name: "Vrf27".into(),
            l3_vni: 27,
            table: 1_000_027,
        }],
        segments: vec![segment(4000, true, &["10.91.0.12"])],
        ports,
        ..SwitchDesired::default()
    }
}

fn name(port: &str) -> PortName {
    PortName::new(port).unwrap()
}

fn map(port: &str, direction: &str) -> PolicyName {
    PolicyName::new(&format!("MM-{port}-{direction}")).unwrap()
}

/// A switch that has the ports of a model and nothing else.
fn bare(model: &SwitchModel) -> SwitchModel {
    let mut out = SwitchModel::default();
    for (name, port) in &model.ports {
        let port = Port {
            membership: Membership::Quarantine,
            ..port.clone()
        };
        out.ports.insert(name.clone(), port);
    }
    out
}

#[test]
fn tenants_are_routed_and_a_switch_can_have_all_of_it() {
    let ports = vec![
        placed(
            "swp1",
            27,
            PortPlace::Routed,
            neighbour(&["10.0.0.0/22", "2001:db8::/64"], &[]),
        ),
        placed("swp2", 4000, PortPlace::PrivateSegment, None),
        placed(
            "swp_3.1",
            27,
            PortPlace::Underlay,
            neighbour(&["10.1.0.7/32"], &[27, 100]),
        ),
        placed("swp4", 0, PortPlace::Quarantine, None),
    ];
    let (model, problems) = intent(&desired(ports), &evpn_config(), Capability::ALL);
    assert_eq!(problems, Vec::<String>::new());
    let vrf = VrfName::new("Vrf27").unwrap();
    let place = |port: &str| model.ports[port].membership.clone();
    assert_eq!(place("swp1"), Membership::Routed(vrf.clone()));
    assert_eq!(place("swp_3.1"), Membership::Underlay);
    assert_eq!(place("swp31"), Membership::Underlay);
    assert_eq!(place("swp4"), Membership::Quarantine);
    let provisioning = Vni::new(4000).unwrap();
    let private = Membership::Segment {
        vni: provisioning,
        is_private: true,
    };
    assert_eq!(place("swp2"), private);
    assert!(model.segments[&provisioning].remotes.is_empty());
    let bgp = model.bgp.as_ref().unwrap();
    assert_eq!(bgp.router_id().to_string(), "10.91.0.11");
    let server = &bgp.vrfs[&vrf][&Peer::Interface(name("swp1"))];
    assert_eq!(server.remote_asn.map(|asn| asn.0), Some(4_210_000_007));
    assert!(!server.has_evpn);
    let maps = &model.policies.route_maps;
    assert!(maps[&map("swp1", "in")].permits_own_routes_only());
    let firewall = &maps[&map("swp__3_d1", "in")];
    let has_path = |rule: &agents_nos::model::RouteRule| {
        rule.matches
            .iter()
            .any(|m| matches!(m, RouteMatch::AsPath(_)))
    };
    assert!(
        firewall.rules().values().all(has_path),
        "a firewall is no transit"
    );
    let exported = maps[&map("swp__3_d1", "out")]
        .matches()
        .filter_map(|m| match m {
            RouteMatch::Evpn(vni) => Some(vni.get()),
            _ => None,
        });
    assert_eq!(exported.collect::<Vec<_>>(), [27, 100]);
    let fitted = fit(&bare(&model), &model, Capability::ALL);
    assert_eq!(fitted.problems, vec![]);
    assert_eq!(fitted.model.ports, model.ports);
}

#[test]
fn without_bgp_tenants_stay_in_quarantine() {
    let ports = || {
        vec![
            placed(
                "swp1",
                27,
                PortPlace::Routed,
                neighbour(&["10.0.0.0/22"], &[]),
            ),
            placed("swp2", 4000, PortPlace::PrivateSegment, None),
            placed(
                "swp3",
                27,
                PortPlace::Underlay,
                neighbour(&["10.1.0.7/32"], &[27]),
            ),
        ]
    };
    let lacking = [
        Capability::PrivatePorts,
        Capability::Vrfs,
        Capability::Underlay,
    ];
    let no_daemon = intent(&desired(ports()), &evpn_config(), &lacking);
    let no_number = intent(&desired(ports()), &config(), Capability::ALL);
    for (model, problems) in [no_daemon, no_number] {
        assert!(model.bgp.is_none());
        for port in ["swp1", "swp3"] {
            assert_eq!(model.ports[port].membership, Membership::Quarantine);
        }
        assert!(model.ports["swp2"].membership.segment().is_some());
        let found = |text: &str| problems.iter().any(|problem| problem.starts_with(text));
        assert!(
            found("BGP: ") && found("port swp1: ") && found("port swp3: "),
            "{problems:?}"
        );
    }
}

#[test]
fn a_broken_session_keeps_its_port_out_and_no_other() {
    let crowd: Vec<String> = (0..5000u32)
        .map(|n| format!("10.{}.{}.0/24", n / 256, n % 256))
        .collect();
    let crowded = PortNeighbour {
        import_prefixes: crowd,
        asns: vec![1],
        evpn_vnis: vec![],
    };
    let nameless = PortNeighbour {
        asns: vec![],
        ..neighbour(&["10.0.0.0/22"], &[]).unwrap()
    };
    let ports = vec![
        placed("swp1", 27, PortPlace::Routed, neighbour(&["ten"], &[])),
        placed("swp2", 27, PortPlace::Routed, Some(crowded)),
        placed("swp3", 27, PortPlace::Routed, Some(nameless)),
        placed(
            "swp4",
            28,
            PortPlace::Routed,
            neighbour(&["10.0.0.0/22"], &[]),
        ),
        placed("swp5", 27, PortPlace::Underlay, None),
        placed(
            "swp6",
            27,
            PortPlace::Underlay,
            neighbour(&["10.1.0.7/32"], &[1 << 24]),
        ),
        placed("swp7", 27, PortPlace::Unspecified, None),
        placed("swp31", 27, PortPlace::Routed, None),
        placed(
            "swp8",
            27,
            PortPlace::Routed,
            neighbour(&["10.0.0.0/22"], &[]),
        ),
    ];
    let (model, problems) = intent(&desired(ports), &evpn_config(), Capability::ALL);
    assert_eq!(problems.len(), 8, "{problems:?}");
    for number in 1..=7 {
        let port = format!("swp{number}");
        assert_eq!(
            model.ports[port.as_str()].membership,
            Membership::Quarantine,
            "{port}"
        );
    }
    assert!(matches!(
        model.ports["swp8"].membership,
        Membership::Routed(_)
    ));
    assert_eq!(
        model.ports["swp31"].membership,
        Membership::Underlay,
        "a spine stays one"
    );
    assert_eq!(model.policies.route_maps.len(), 4, "swp8 and the spines");
}
