//! The DHCP relay of a switch says where a card asked for its lease: one more witness, which moves
//! nothing by itself and keeps a cable from being handed over when it disagrees.

use control_state::*;
use tests_support::announcement;

use crate::cables::{ISOLATED, PROVISIONING, blind, claiming, links, obstacle, vni};
use crate::world::*;

/// A world in which every control node knows `level`.
fn world(level: u32) -> World {
    let mut world = World::new();
    world.ok(AnnounceNode {
        level,
        ..announcement(1)
    });
    world
}

/// A boot of a machine, with the port that a relay says.
fn boots_at(world: &mut World, number: u128, at: Option<(&str, &str)>) {
    let seen_at = world.now;
    world.ok(MachineSeen {
        id: id(number),
        partition: text(PARTITION),
        mac: Some(mac(number)),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: at.map(|(switch, port)| RelayedPort {
            switch: text(switch),
            port: port.to_owned(),
        }),
    });
    // Hammer is back in its rest.
    if world.phase(number) == Phase::Waiting {
        world.later(1000);
        world.event(number, EventKind::Waiting);
    }
}

fn issues(world: &World, number: u128) -> String {
    query::cable_issues(&world.tables, world.machine(number)).join("; ")
}

#[test]
fn a_relay_alone_connects_nothing() {
    let mut world = world(2);
    boots_at(&mut world, 1, Some(("leaf1", "swp5")));
    assert_eq!(links(&world, 1), [""; 0]);
    assert_eq!(vni(&world, "leaf1", "swp5"), PROVISIONING);
    // Neither with a claim that the switch does not confirm.
    world.ok(claiming(1, &[("leaf1", "swp5")]));
    assert_eq!(links(&world, 1), [""; 0]);
    world.hear("leaf1", "swp5", &[mac(1)]);
    assert_eq!(links(&world, 1), ["leaf1 swp5"]);
}

#[test]
fn a_relay_that_agrees_changes_nothing() {
    let mut world = world(2);
    world.waiting(1);
    assert_eq!(obstacle(&world, 1), "");
    boots_at(&mut world, 1, Some(("leaf1", "swp1")));
    assert_eq!(links(&world, 1), ["leaf1 swp1"]);
    assert_eq!(issues(&world, 1), "");
}

#[test]
fn a_relay_that_disagrees_keeps_a_machine_from_tenants() {
    let mut world = world(2);
    world.waiting(1);
    boots_at(&mut world, 1, Some(("leaf1", "swp5")));
    let why = "but it asked for its lease at leaf1 swp5, as the relay of leaf1 says";
    assert!(issues(&world, 1).contains(why), "{}", issues(&world, 1));
    assert!(obstacle(&world, 1).contains(why), "{}", obstacle(&world, 1));
    assert_eq!(
        world.refused(allocation_of(1)),
        ErrorCode::NoMachineAvailable
    );
    assert_eq!(vni(&world, "leaf1", "swp5"), PROVISIONING);
    // The next boot counts, whether a relay speaks of it or not.
    let mut silent = world.clone();
    for (world, at) in [(&mut world, Some(("leaf1", "swp1"))), (&mut silent, None)] {
        boots_at(world, 1, at);
        assert_eq!(issues(world, 1), "");
        assert_eq!(links(world, 1), ["leaf1 swp1"]);
    }
}

#[test]
fn a_claim_that_nobody_else_confirms_is_refused_by_a_relay() {
    let mut world = world(2);
    blind(&mut world);
    boots_at(&mut world, 1, Some(("leaf1", "swp5")));
    world.ok(claiming(1, &[("leaf1", "swp1")]));
    assert_eq!(links(&world, 1), [""; 0]);
    assert!(issues(&world, 1).contains("asked for its lease at leaf1 swp5"));
    boots_at(&mut world, 1, Some(("leaf1", "swp1")));
    assert_eq!(links(&world, 1), ["leaf1 swp1"]);
}

#[test]
fn a_cable_that_is_disputed_after_the_allocation_is_not_handed_over() {
    let mut world = world(2);
    world.waiting(1);
    world.switch_obeys();
    world.allocate(1);
    boots_at(&mut world, 1, Some(("leaf1", "swp5")));
    world.install(1, 1);
    assert_eq!(vni(&world, "leaf1", "swp1"), ISOLATED);
    assert_eq!(vni(&world, "leaf1", "swp5"), PROVISIONING);
    world.switch_obeys();
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::TenantPorts);
    assert!(
        world.machine(1).reason.contains("as the relay of leaf1"),
        "{}",
        world.machine(1).reason
    );
    assert_eq!(vni(&world, "leaf1", "swp1"), ISOLATED);
}

#[test]
fn what_is_said_of_a_tenants_machine_moves_nothing() {
    let mut world = world(2);
    world.waiting(1);
    boots_at(&mut world, 1, Some(("leaf1", "swp1")));
    world.switch_obeys();
    world.allocate(1);
    world.install(1, 1);
    world.switch_obeys();
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::Running);
    let tenants = world.port(1);
    boots_at(&mut world, 1, Some(("leaf1", "swp5")));
    assert_eq!(world.port(1), tenants);
    boots_at(&mut world, 1, None);
    assert_eq!(world.machine(1).boot_ports.len(), 1, "kept as it was");
    assert_eq!(world.phase(1), Phase::Running);
}

#[test]
fn words_on_what_does_not_exist_are_dropped() {
    let mut world = world(2);
    world.waiting(1);
    for at in [("leaf9", "swp1"), ("leaf1", "swp99"), ("leaf1", "")] {
        boots_at(&mut world, 1, Some(at));
        assert_eq!(world.machine(1).boot_ports.len(), 0, "{at:?}");
    }
    // Another card than the machine's.
    let seen_at = world.now;
    world.ok(MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(7)),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: Some(RelayedPort {
            switch: text("leaf1"),
            port: "swp5".into(),
        }),
    });
    assert_eq!(world.machine(1).boot_ports.len(), 0);
}

#[test]
fn below_its_level_the_word_is_left_out() {
    let mut world = world(1);
    world.waiting(1);
    boots_at(&mut world, 1, Some(("leaf1", "swp5")));
    assert_eq!(world.machine(1).boot_ports.len(), 0);
    assert_eq!(issues(&world, 1), "");
}

#[test]
fn a_leaf_that_lies_stalls_or_restarts_is_handed_nothing() {
    let mut world = world(2);
    world.waiting(1);
    boots_at(&mut world, 1, Some(("leaf1", "swp1")));
    world.switch_obeys();
    world.allocate(1);
    world.install(1, 1);
    world.phone_home(1);
    // It stalls: nothing was reported since the order.
    assert_eq!(world.phase(1), Phase::TenantPorts);
    // It restarts and registers, and its first report is of the time before.
    world.ok(leaf("leaf1", "rack-1"));
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::TenantPorts);
    // It lies: another port is said to be in the tenant's segment, this one where it was.
    let tenants = world.port(1);
    for (port, vni) in [
        ("swp2", tenants),
        ("swp1", PROVISIONING),
        ("swp1", ISOLATED),
    ] {
        let mut report = world.hearing("leaf1", port, vec![]).unwrap();
        let seen = report.ports.get_mut(port).unwrap();
        seen.vni = vni.try_into().unwrap_or_default();
        world.ok(report);
        world.phone_home(1);
        assert_eq!(world.phase(1), Phase::TenantPorts, "{port} in {vni}");
    }
    world.switch_obeys();
    assert_eq!(world.phase(1), Phase::Running);
}
