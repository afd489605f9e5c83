//! Drains of switches.

use control_state::*;

use super::{as_desired, drain, found, obey, running, switch, world};
use crate::world::*;

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

/// A bridged machine has no BGP session, and does not hear that its leaf is drained.
#[test]
fn a_bridged_machine_of_an_evpn_leaf_loses_the_drained_port() {
    let mut world = world("evpn");
    running(&mut world, 1);
    world.ok(network_of_image("bridged"));
    running(&mut world, 2);
    obey(&mut world, "leaf2", "swp1");
    world.ok(drain("leaf1", true));
    let up = |world: &World| -> Vec<bool> {
        let intents = life::port_intents(&world.tables, &switch(world, "leaf1"));
        let intents = intents.iter().take(2);
        intents.map(|intent| intent.admin_up).collect()
    };
    assert_eq!(up(&world), [true, false], "the routed one listens to BGP");
    world.ok(drain("leaf1", false));
    assert_eq!(up(&world), [true, true]);
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
