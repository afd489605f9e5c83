//! The switches for their operators: differences, forecasts, traces and drains.

mod differences;
mod drains;
mod firewall_traces;
mod forecasts;
mod traces;

use control_state::*;
use proto_types::MacAddr;
use tests_support::announcement;

use crate::world::*;

/// A partition with EVPN, or a static one, with two leaves and the second machine's cables.
pub(super) fn world(fabric: &str) -> World {
    let mut world = World::new();
    world.ok(announcement(1));
    let label = (label::FABRIC.to_owned(), fabric.to_owned());
    world.ok(relabel(LabelsUpdate::Replace([label].into())));
    if fabric == "evpn" {
        world.ok(network_of_image("routed"));
    }
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
pub(super) fn dual_homed(world: &mut World, number: u128) {
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

pub(super) fn running(world: &mut World, number: u128) {
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

pub(super) fn switch(world: &World, id: &str) -> Switch {
    let found = world.tables.get::<Switch>(&text(id)).unwrap();
    Switch::clone(found)
}

pub(super) fn session(neighbour: &str, family: &str, state: &str) -> RoutingSession {
    RoutingSession {
        vrf: "default".into(),
        neighbour: neighbour.into(),
        family: family.into(),
        state: state.into(),
        ..RoutingSession::default()
    }
}

/// The report of a leaf that is as desired, with a session on one port.
pub(super) fn as_desired(world: &World, leaf: &str, port: &str) -> ReportSwitch {
    let known = switch(world, leaf);
    let desired = life::port_intents(&world.tables, &known);
    let ports = desired.into_iter().map(|intent| {
        let before = known.ports[&intent.name].observed.clone();
        let seen = PortObserved {
            admin_up: intent.admin_up,
            oper_up: intent.admin_up,
            vni: intent.vni,
            place: match intent.place {
                life::PortPlace::Segment | life::PortPlace::Bridged => ObservedPlace::Segment,
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

pub(super) fn obey(world: &mut World, leaf: &str, port: &str) {
    let report = as_desired(world, leaf, port);
    world.ok(report);
}

pub(super) fn drain(switch: &str, drained: bool) -> DrainSwitch {
    DrainSwitch {
        id: text(switch),
        drained,
        force: false,
        silent: [].into(),
    }
}

pub(super) fn found(
    world: &World,
    leaf: &str,
) -> Vec<(String, &'static str, String, String, DifferenceState)> {
    let all = differences(&world.tables, &switch(world, leaf)).into_iter();
    all.map(|one| (one.object, one.field, one.wanted, one.seen, one.state))
        .collect()
}
