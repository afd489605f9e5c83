//! The way of a packet from a firewall, and to one.

use control_state::*;

use super::traces::{address, traced};
use super::{as_desired, dual_homed, running, session, world};
use crate::world::*;

/// A machine on port 1 and a firewall on port 3 of both leaves, all as desired.
fn with_firewall(fabric: &str) -> World {
    let mut world = world(fabric);
    let names = world.with_firewall_networks();
    running(&mut world, 1);
    dual_homed(&mut world, 3);
    world.ok(AllocateMachine {
        machine: Some(id(3)),
        partition: None,
        size: None,
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: names
            .map(|name| WantedNetwork {
                network: text(name),
                ips: vec![],
            })
            .to_vec(),
        ..allocation_of(3)
    });
    world.install(3, 3);
    for leaf in ["leaf1", "leaf2"] {
        report(&mut world, leaf, "Established", |_| ());
    }
    world
}

/// A leaf reports its desired state, with this state of the firewall's EVPN session.
fn report(world: &mut World, leaf: &str, evpn: &str, edit: impl FnOnce(&mut ReportSwitch)) {
    let mut report = as_desired(world, leaf, "swp1");
    let sessions = &mut report.health.as_mut().unwrap().sessions;
    sessions.push(session("swp3", "ipv4Unicast", "Established"));
    sessions.push(session("swp3", "l2VpnEvpn", evpn));
    edit(&mut report);
    world.ok(report);
}

fn vrf(world: &World) -> u32 {
    let network = world.tables.get::<Network>(&text("private")).unwrap();
    network.vrf.unwrap()
}

#[test]
fn a_firewall_sends_into_each_of_its_networks() {
    let world = with_firewall("evpn");
    let [one, three] = [1, 3].map(|number| world.machine(number).id.to_string());
    let (firewall, tenants) = (
        format!("firewall {three}"),
        format!("tunnel VNI {}", vrf(&world)),
    );
    let machine = address(&world, 1);
    let begin = [&*firewall, "port leaf1/swp3"];
    for (to, hops, verdict) in [
        (
            machine.as_str(),
            vec![
                "leaf leaf1",
                &tenants,
                "port leaf1/swp1",
                &format!("machine {one}"),
            ],
            format!("arrives at machine {one}"),
        ),
        (
            "192.0.2.77",
            vec!["leaf leaf1", "tunnel VNI 100"],
            "leaves the partition through network internet".to_owned(),
        ),
        (
            "10.91.0.2",
            vec!["leaf leaf1"],
            "arrives at switch leaf2".to_owned(),
        ),
        (
            "10.1.0.200",
            vec!["leaf leaf1 !"],
            "stops at leaf leaf1: underlay: no switch and no firewall has 10.1.0.200".to_owned(),
        ),
        (
            "10.128.0.200",
            vec!["leaf leaf1 !"],
            format!("stops at leaf leaf1: no machine of VRF {}", vrf(&world)),
        ),
    ] {
        let (found, said) = traced(&world, 3, to);
        assert_eq!(found, [&begin[..], &hops].concat(), "{to}");
        assert!(said.starts_with(&verdict), "{to}: {said}");
    }
    let (hops, verdict) = traced(&world, 3, "203.0.113.9");
    assert_eq!(hops, [format!("{firewall} !")]);
    assert!(
        verdict.contains("has no network with 203.0.113.9"),
        "{verdict}"
    );
    let (hops, _) = traced(&world, 3, &address(&world, 3));
    assert_eq!(hops, [firewall], "its own address");
}

#[test]
fn a_firewalls_packet_stops_where_the_fabric_is_broken() {
    let mut world = with_firewall("evpn");
    let machine = address(&world, 1);
    let down = |port: &'static str| {
        move |report: &mut ReportSwitch| report.ports.get_mut(port).unwrap().oper_up = false
    };
    report(&mut world, "leaf1", "Established", down("swp3"));
    let (hops, _) = traced(&world, 3, &machine);
    assert_eq!(
        hops[1..4],
        ["port leaf1/swp3 !", "port leaf2/swp3", "leaf leaf2"]
    );

    report(&mut world, "leaf2", "Active", |_| ());
    let (_, verdict) = traced(&world, 3, &machine);
    let wanted = "stops at port leaf2/swp3: the EVPN session with the firewall is Active";
    assert_eq!(verdict, wanted);

    report(&mut world, "leaf1", "Established", |report| {
        report.health.as_mut().unwrap().sessions[1].state = "Idle".into();
    });
    let (_, verdict) = traced(&world, 3, "192.0.2.77");
    let no_spine = "switch leaf1 has no EVPN session that is established";
    assert_eq!(verdict, format!("stops at tunnel VNI 100: {no_spine}"));
    let (_, verdict) = traced(&world, 3, &machine);
    assert!(
        verdict.starts_with("arrives"),
        "at the same leaf: {verdict}"
    );
    report(&mut world, "leaf1", "Established", |report| {
        report.health.as_mut().unwrap().sessions[1].state = "Idle".into();
        report.ports.get_mut("swp1").unwrap().oper_up = false;
    });
    report(&mut world, "leaf2", "Established", |_| ());
    let (_, verdict) = traced(&world, 3, &machine);
    assert_eq!(
        verdict,
        format!("stops at tunnel VNI {}: {no_spine}", vrf(&world))
    );

    for leaf in ["leaf1", "leaf2"] {
        report(&mut world, leaf, "Established", down("swp1"));
    }
    let (_, verdict) = traced(&world, 3, &machine);
    assert_eq!(verdict, "stops at port leaf2/swp1: has no carrier");
    world.free(3);
    world.bmc(BmcAction::PowerOff, None);
    let (_, verdict) = traced(&world, 3, &machine);
    assert!(
        verdict.contains("its ports are not the tenant's yet, or no more"),
        "{verdict}"
    );
}

#[test]
fn a_machines_packet_reaches_a_firewall() {
    let world = with_firewall("evpn");
    let [one, three] = [1, 3].map(|number| world.machine(number).id);
    let way = [
        format!("machine {one}"),
        "port leaf1/swp1".to_owned(),
        "leaf leaf1".to_owned(),
        format!("tunnel VNI {}", vrf(&world)),
        "port leaf1/swp3".to_owned(),
        format!("firewall {three}"),
    ];
    let (hops, verdict) = traced(&world, 1, "192.0.2.77");
    assert_eq!(hops, way);
    assert!(
        verdict.contains(&format!("reaches firewall {three}")),
        "{verdict}"
    );
    let allocation = world.machine(3).allocation.clone().unwrap();
    let mut networks = allocation.networks.iter();
    let private = networks.find(|network| network.kind.is_child()).unwrap();
    let (hops, verdict) = traced(&world, 1, &private.ips[0].to_string());
    assert_eq!(hops, way);
    assert_eq!(verdict, format!("arrives at firewall {three}"));
}

#[test]
fn a_firewall_without_evpn_is_in_the_segment_of_its_tenant() {
    let world = with_firewall("static");
    let [one, three] = [1, 3].map(|number| world.machine(number).id);
    let (hops, verdict) = traced(&world, 3, &address(&world, 1));
    let way = [
        format!("firewall {three}"),
        "port leaf1/swp3".to_owned(),
        "leaf leaf1".to_owned(),
        "port leaf1/swp1".to_owned(),
        format!("machine {one}"),
    ];
    assert_eq!(hops, way);
    assert_eq!(verdict, format!("arrives at machine {one}"));
}
