//! A machine runs once both of its leaves said that its ports are the tenant's.

use control_state::*;
use tests_support::announcement;

use crate::cables::{card, claiming, offers};
use crate::world::*;

const PORTS_MS: u64 = 30_000;
const PORTS_HOLD_MS: u64 = 10 * 60_000;

/// A machine on two leaves, installed, and no longer in hammer. Every control node knows `level`.
fn installed_on_two_leaves(level: u32) -> World {
    let mut world = World::new();
    world.ok(AnnounceNode {
        level,
        ..announcement(1)
    });
    world.ok(leaf("leaf2", "rack-1"));
    world.hear("leaf1", "swp1", &[mac(1)]);
    world.hear("leaf2", "swp1", &[card(1, 1)]);
    offers(
        &mut world,
        claiming(1, &[("leaf1", "swp1"), ("leaf2", "swp1")]),
    );
    for leaf in ["leaf1", "leaf2"] {
        world.leaf_obeys(leaf);
    }
    world.allocate(1);
    world.install(1, 1);
    world
}

fn reason(world: &World) -> &str {
    &world.machine(1).reason
}

#[test]
fn a_machine_waits_for_both_leaves() {
    let mut world = installed_on_two_leaves(2);
    world.leaf_obeys("leaf1");
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::TenantPorts);
    let missing = "switch leaf2 has not reported port swp1 in the tenant's segment";
    assert_eq!(reason(&world), missing);
    // Another report of the first leaf, and the call of every minute, change nothing.
    world.leaf_obeys("leaf1");
    world.later(60_000);
    world.phone_home(1);
    assert_eq!(
        (world.phase(1), reason(&world)),
        (Phase::TenantPorts, missing)
    );
    world.leaf_obeys("leaf2");
    assert_eq!((world.phase(1), reason(&world)), (Phase::Running, ""));
}

#[test]
fn a_machine_whose_leaves_were_first_runs_at_its_first_call() {
    let mut world = installed_on_two_leaves(2);
    world.leaf_obeys("leaf2");
    world.leaf_obeys("leaf1");
    world.phone_home(1);
    assert_eq!((world.phase(1), reason(&world)), (Phase::Running, ""));
}

#[test]
fn the_reason_names_the_leaf_that_is_missing() {
    let mut world = installed_on_two_leaves(2);
    world.phone_home(1);
    assert!(reason(&world).contains("leaf1"), "{}", reason(&world));
    world.leaf_obeys("leaf1");
    world.tick(PORTS_MS);
    assert_eq!(world.phase(1), Phase::TenantPorts);
    assert!(reason(&world).contains("leaf2"), "{}", reason(&world));
}

#[test]
fn a_dead_leaf_does_not_keep_a_machine_from_its_tenant() {
    let mut world = installed_on_two_leaves(2);
    world.leaf_obeys("leaf1");
    world.phone_home(1);
    world.tick(PORTS_HOLD_MS);
    let lacks = "it lacks a port: switch leaf2 has not reported port swp1 in the tenant's segment";
    assert_eq!((world.phase(1), reason(&world)), (Phase::Running, lacks));
    world.phone_home(1);
    assert_eq!(reason(&world), lacks);
    world.leaf_obeys("leaf2");
    world.phone_home(1);
    assert_eq!((world.phase(1), reason(&world)), (Phase::Running, ""));
}

#[test]
fn a_leaf_that_is_deleted_is_not_waited_for() {
    let mut world = installed_on_two_leaves(2);
    world.leaf_obeys("leaf1");
    world.phone_home(1);
    world.ok(DeleteSwitch {
        id: text("leaf2"),
        force: true,
    });
    assert_eq!(world.phase(1), Phase::Running);
}

#[test]
fn a_waiting_machine_is_freed() {
    let mut world = installed_on_two_leaves(2);
    world.phone_home(1);
    world.free(1);
    assert_eq!(world.phase(1), Phase::ReclaimPowerOff);
}

#[test]
fn a_cluster_with_an_older_node_does_not_wait() {
    let mut world = installed_on_two_leaves(1);
    world.phone_home(1);
    assert_eq!((world.phase(1), reason(&world)), (Phase::Running, ""));
}
