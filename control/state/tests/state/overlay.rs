//! The switches for their operators: differences, forecasts, traces and drains.

use control_state::*;
use proto_types::{MacAddr, SwitchId, Timestamp};

use crate::world::*;

/// A partition with EVPN, or a static one, with two leaves and the second machine's cables.
fn world(fabric: &str) -> World {
    let mut world = World::new();
    let label = (label::FABRIC.to_owned(), fabric.to_owned());
    world.ok(relabel(LabelsUpdate::Replace([label].into())));
    for (number, name) in [(1, "leaf1"), (2, "leaf2")] {
        world.ok(RegisterSwitch {
            vtep_ip: Some([10, 91, 0, number].into()),
            ..leaf(name, "rack-1")
        });
    }
    world
}

fn second_card(number: u128) -> MacAddr {
    mac(number + 100)
}

/// A machine on the same port of both leaves, which are as desired.
fn dual_homed(world: &mut World, number: u128) {
    world.boot(number, "boot-1");
    let mut registration = registration(number, "boot-1");
    let mut second = registration.hardware.nics[0].clone();
    second.name = "eth1".into();
    second.mac = second_card(number);
    second.neighbours[0].chassis_id = "leaf2".into();
    second.neighbours[0].system_name = "leaf2".into();
    registration.hardware.nics.push(second);
    world.hear("leaf2", &format!("swp{number}"), &[second_card(number)]);
    world.ok(registration);
    world.wipe(number);
    world.event(number, EventKind::Waiting);
}

fn running(world: &mut World, number: u128) {
    dual_homed(world, number);
    world.ok(AllocateMachine {
        machine: Some(id(number)),
        partition: None,
        size: None,
        ..allocation_of(number)
    });
    world.install(number, number);
    for leaf in ["leaf1", "leaf2"] {
        obey(world, leaf, &format!("swp{number}"));
    }
}

fn switch(world: &World, id: &str) -> Switch {
    let found = world.tables.get::<Switch>(&text(id)).unwrap();
    Switch::clone(found)
}

fn session(neighbour: &str, family: &str, state: &str) -> RoutingSession {
    RoutingSession {
        vrf: "default".into(),
        neighbour: neighbour.into(),
        family: family.into(),
        state: state.into(),
        ..RoutingSession::default()
    }
}

/// The report of a leaf that is as desired, with a session on one port.
fn as_desired(world: &World, leaf: &str, port: &str) -> ReportSwitch {
    let known = switch(world, leaf);
    let desired = life::port_intents(&world.tables, &known);
    let ports = desired.into_iter().map(|intent| {
        let before = known.ports[&intent.name].observed.clone();
        let seen = PortObserved {
            admin_up: intent.admin_up,
            oper_up: intent.admin_up,
            vni: intent.vni,
            place: match intent.place {
                life::PortPlace::Segment => ObservedPlace::Segment,
                life::PortPlace::Routed => ObservedPlace::Routed,
                life::PortPlace::Underlay => ObservedPlace::Underlay,
            },
            ..before.unwrap_or_default()
        };
        (intent.name, seen)
    });
    let health = SwitchHealth {
        sessions: vec![
            session(port, "ipv4Unicast", "Established"),
            session("swp31", "l2VpnEvpn", "Established"),
        ],
        is_draining: known.drain.is_some(),
        ..SwitchHealth::default()
    };
    ReportSwitch {
        id: text(leaf),
        applied_term: 1,
        applied_generation: world.tables.revision(),
        duration_ms: 1,
        error: None,
        ports: ports.collect(),
        health: Some(health),
    }
}

fn obey(world: &mut World, leaf: &str, port: &str) {
    let report = as_desired(world, leaf, port);
    world.ok(report);
}

fn drain(switch: &str, drained: bool) -> DrainSwitch {
    DrainSwitch {
        id: text(switch),
        drained,
        force: false,
        silent: [].into(),
    }
}

fn found(
    world: &World,
    leaf: &str,
) -> Vec<(String, &'static str, String, String, DifferenceState)> {
    let all = differences(&world.tables, &switch(world, leaf)).into_iter();
    all.map(|one| (one.object, one.field, one.wanted, one.seen, one.state))
        .collect()
}

#[test]
fn a_difference_has_its_field_and_its_cause() {
    let mut world = world("evpn");
    running(&mut world, 1);
    assert_eq!(found(&world, "leaf1"), vec![]);
    let vrf = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();

    let mut report = as_desired(&world, "leaf1", "swp1");
    let port = report.ports.get_mut("swp1").unwrap();
    port.place = ObservedPlace::Other;
    port.vni = proto_types::Vni::try_from(proto_types::VNI_MAX).unwrap();
    port.admin_up = false;
    let health = report.health.as_mut().unwrap();
    health.drift = vec![
        ObjectDrift {
            object: "port swp1".into(),
            noticed_at: Timestamp::from_ms(5),
            is_held: true,
            ..ObjectDrift::default()
        },
        ObjectDrift {
            object: "route map MM-swp1-in".into(),
            seen: "missing".into(),
            desired: "1 permit rules with 2 matches".into(),
            noticed_at: Timestamp::from_ms(6),
            is_healed: true,
            ..ObjectDrift::default()
        },
    ];
    health.problems = vec![ObjectProblem {
        object: "VRF Vrf9".into(),
        reason: "no room".into(),
        attempts: 3,
    }];
    world.ok(report);
    let row = |object: &str, field, wanted: &str, seen: &str, state| {
        (
            object.to_owned(),
            field,
            wanted.to_owned(),
            seen.to_owned(),
            state,
        )
    };
    let expected = [
        row(
            "port swp1",
            "place",
            &format!("VRF {vrf}"),
            "device of another program",
            DifferenceState::Held,
        ),
        row("port swp1", "admin", "up", "down", DifferenceState::Held),
        row("VRF Vrf9", "", "", "", DifferenceState::Failing),
        row(
            "route map MM-swp1-in",
            "",
            "1 permit rules with 2 matches",
            "missing",
            DifferenceState::Healed,
        ),
    ];
    assert_eq!(found(&world, "leaf1"), expected);
    let since = differences(&world.tables, &switch(&world, "leaf1"))[0].since;
    assert_eq!(since, Some(Timestamp::from_ms(5)));

    // Numbers alone are no news, the state of a session is.
    let mut again = as_desired(&world, "leaf2", "swp1");
    again.applied_generation = switch(&world, "leaf2").sync.applied_generation;
    let health = again.health.as_mut().unwrap();
    health.sessions[0].received = 9;
    health.sessions[0].since = Timestamp::from_ms(77);
    assert!(!life::switch_report_matters(&world.tables, &again));
    again.health.as_mut().unwrap().sessions[0].state = "Active".into();
    assert!(life::switch_report_matters(&world.tables, &again));
}

#[test]
fn a_forecast_writes_nothing_and_comes_true() {
    let mut world = world("evpn");
    dual_homed(&mut world, 1);
    let before = world.tables.state_hash().unwrap();
    let change = FabricChange::Allocate {
        machine: id(1),
        network: text("private"),
    };
    let planned = forecast(world.tables.clone(), &change, world.now).unwrap();
    assert_eq!(world.tables.state_hash().unwrap(), before);
    let vrf = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();
    for leaf in ["leaf1", "leaf2"] {
        let leaf: SwitchId = text(leaf);
        let of = |object: &str, field: &str| {
            let mut rows = planned.iter().filter(|one| one.switch == leaf);
            let row = rows.find(|one| one.object == object && one.field == field);
            let row = row.unwrap_or_else(|| panic!("{planned:?}"));
            (row.before.clone(), row.after.clone())
        };
        let place = of("port swp1", "place");
        assert_eq!(
            place,
            (
                format!("segment {PROVISIONING_VNI_DEFAULT}"),
                format!("VRF {vrf}")
            )
        );
        assert_eq!(of("port swp1", "announces").1, "10.128.0.0/22");
        assert_eq!(of(&format!("VRF {vrf}"), "device").1, format!("Vrf{vrf}"));
    }
    assert!(
        planned.iter().all(|one| one.object != "port swp2"),
        "{planned:?}"
    );

    running(&mut world, 2);
    let told = life::port_intents(&world.tables, &switch(&world, "leaf2"));
    assert_eq!(told[1].vni.get(), vrf, "as forecast for the other machine");
    let release = FabricChange::Release(id(2));
    let planned = forecast(world.tables.clone(), &release, world.now).unwrap();
    assert!(
        planned
            .iter()
            .any(|one| one.object == format!("VRF {vrf}") && one.after.is_empty())
    );
    let refused = forecast(
        world.tables.clone(),
        &FabricChange::Release(id(1)),
        world.now,
    );
    assert_eq!(refused.unwrap_err().code, ErrorCode::MachineNotAllocated);

    let down = FabricChange::Port(SetSwitchPort {
        id: text("leaf1"),
        port: "swp2".into(),
        admin_up: false,
    });
    let planned = forecast(world.tables.clone(), &down, world.now).unwrap();
    let [one] = &planned[..] else {
        panic!("{planned:?}");
    };
    assert_eq!(
        (one.field, one.before.as_str(), one.after.as_str()),
        ("admin", "up", "down")
    );
}

#[test]
fn a_drain_needs_another_way_for_every_machine() {
    let mut world = world("evpn");
    running(&mut world, 1);
    let command = |op: DrainSwitch, world: &World| {
        let mut tables = world.tables.clone();
        let command = Command::new(world.now, "tester", op);
        apply(&mut tables, &command).result.unwrap_err().message
    };
    let silent = DrainSwitch {
        silent: [text("leaf2")].into(),
        ..drain("leaf1", true)
    };
    assert!(command(silent.clone(), &world).contains("nothing is heard of switch leaf2"));
    let mut report = as_desired(&world, "leaf2", "swp1");
    report.health.as_mut().unwrap().sessions.remove(0);
    world.ok(report);
    let message = command(drain("leaf1", true), &world);
    assert!(
        message.contains("leaf2 has no BGP session on port swp1"),
        "{message}"
    );
    let mut report = as_desired(&world, "leaf2", "swp1");
    report.ports.get_mut("swp1").unwrap().oper_up = false;
    world.ok(report);
    let message = command(drain("leaf1", true), &world);
    assert!(
        message.contains("port swp1 of switch leaf2 is down"),
        "{message}"
    );
    assert_eq!(
        world.refused(drain("leaf1", true)),
        ErrorCode::SwitchNotReady
    );

    obey(&mut world, "leaf2", "swp1");
    world.ok(drain("leaf1", true));
    let revision = world.tables.revision();
    world.ok(drain("leaf1", true));
    assert_eq!(
        world.tables.revision(),
        revision,
        "a repetition changes nothing"
    );
    let desired = life::Fabric::of(&world.tables)
        .desired(&text("leaf1"))
        .unwrap();
    assert!(desired.is_drained);
    assert!(
        desired.ports.iter().all(|port| port.admin_up),
        "a routed machine listens to BGP"
    );
    let [(object, field, ..)] = &found(&world, "leaf1")[..] else {
        panic!("{:?}", found(&world, "leaf1"));
    };
    assert_eq!((object.as_str(), *field), ("BGP", "drain"));
    obey(&mut world, "leaf1", "swp1");
    assert_eq!(found(&world, "leaf1"), vec![]);
    let message = command(drain("leaf2", true), &world);
    assert!(
        message.contains("switch leaf1 is drained itself"),
        "{message}"
    );
    world.ok(DrainSwitch {
        force: true,
        ..drain("leaf2", true)
    });
    world.ok(drain("leaf1", false));
    let desired = life::Fabric::of(&world.tables)
        .desired(&text("leaf1"))
        .unwrap();
    assert!(!desired.is_drained);
    assert_eq!(world.refused(drain("nowhere", true)), ErrorCode::NotFound);
}

#[test]
fn a_bridged_machine_loses_the_drained_port_alone() {
    let mut world = world("static");
    running(&mut world, 1);
    running(&mut world, 2);
    // The second machine has no carrier at the other leaf: its port stays up.
    let mut report = as_desired(&world, "leaf2", "swp1");
    report.ports.get_mut("swp2").unwrap().oper_up = false;
    world.ok(report);
    assert_eq!(
        world.refused(drain("leaf1", true)),
        ErrorCode::SwitchNotReady
    );
    world.ok(DrainSwitch {
        force: true,
        ..drain("leaf1", true)
    });
    let up = |world: &World, leaf: &str| -> Vec<bool> {
        let intents = life::port_intents(&world.tables, &switch(world, leaf));
        intents
            .iter()
            .take(3)
            .map(|intent| intent.admin_up)
            .collect()
    };
    assert_eq!(up(&world, "leaf1"), [false, true, true]);
    assert_eq!(up(&world, "leaf2"), [true, true, true]);
    // A machine that is wiped needs its port.
    world.phone_home(1);
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    assert_eq!(up(&world, "leaf1"), [true, true, true]);
    world.ok(drain("leaf1", false));
}

/// Kinds and objects of the hops, and the verdict.
fn traced(world: &World, from: u128, to: &str) -> (Vec<String>, String) {
    let trace = trace_packet(&world.tables, id(from), to.parse().unwrap()).unwrap();
    let hops = trace.hops.iter().map(|hop| {
        let mark = if hop.stops { " !" } else { "" };
        format!("{} {}{mark}", hop.kind, hop.at)
    });
    (hops.collect(), trace.verdict)
}

fn address(world: &World, number: u128) -> String {
    let allocation = world.machine(number).allocation.as_ref().unwrap();
    allocation.networks[0].ips[0].to_string()
}

#[test]
fn a_packet_is_followed_to_where_it_stops() {
    let mut world = world("evpn");
    running(&mut world, 1);
    running(&mut world, 2);
    for leaf in ["leaf1", "leaf2"] {
        let mut report = as_desired(&world, leaf, "swp1");
        let health = report.health.as_mut().unwrap();
        health
            .sessions
            .push(session("swp2", "ipv4Unicast", "Established"));
        world.ok(report);
    }
    let vrf = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();
    let two = address(&world, 2);
    let (hops, verdict) = traced(&world, 1, &two);
    let (one_id, two_id) = (world.machine(1).id, world.machine(2).id);
    let local = [
        format!("machine {one_id}"),
        "port leaf1/swp1".to_owned(),
        "leaf leaf1".to_owned(),
        "port leaf1/swp2".to_owned(),
        format!("machine {two_id}"),
    ];
    assert_eq!(hops, local);
    assert_eq!(verdict, format!("arrives at machine {two_id}"));

    // Without its own port on the first leaf the target is reached through the tunnel.
    let mut report = as_desired(&world, "leaf1", "swp1");
    report.ports.get_mut("swp2").unwrap().oper_up = false;
    world.ok(report);
    let (hops, _) = traced(&world, 1, &two);
    let across = [
        format!("machine {one_id}"),
        "port leaf1/swp1".to_owned(),
        "leaf leaf1".to_owned(),
        format!("tunnel VNI {vrf}"),
        "port leaf2/swp2".to_owned(),
        format!("machine {two_id}"),
    ];
    assert_eq!(hops, across);

    let mut report = as_desired(&world, "leaf2", "swp2");
    report.health.as_mut().unwrap().sessions[1].state = "Active".into();
    world.ok(report);
    let (_, verdict) = traced(&world, 1, &two);
    let wanted = "switch leaf2 has no EVPN session that is established";
    assert!(
        verdict.starts_with("stops at tunnel") && verdict.contains(wanted),
        "{verdict}"
    );

    let (hops, verdict) = traced(&world, 1, "192.0.2.7");
    assert_eq!(hops.last().unwrap(), "leaf leaf1 !");
    assert!(verdict.contains("no machine of VRF"), "{verdict}");
    let (hops, verdict) = traced(&world, 1, &address(&world, 1));
    assert_eq!(
        (hops.len(), verdict.as_str()),
        (1, "the address is the machine's own")
    );

    dual_homed(&mut world, 3);
    let (hops, verdict) = traced(&world, 3, &two);
    assert_eq!(hops.len(), 1);
    assert!(verdict.contains("is not allocated"), "{verdict}");
    let unknown = trace_packet(&world.tables, id(99), "10.0.0.1".parse().unwrap());
    assert_eq!(unknown.unwrap_err().code, ErrorCode::NotFound);
}
