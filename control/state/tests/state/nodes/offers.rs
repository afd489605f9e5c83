//! Machines that their nodes withhold are on offer to nobody, and say why.

use super::*;
use crate::leases::{OWNER, owner};
use crate::node_allocations::{capable, wanted};

fn retired(reason: &str) -> NodeContent {
    NodeContent {
        retired: Some(reason.to_owned()),
        ..NodeContent::default()
    }
}

fn offered(world: &World) -> usize {
    let (partition, size) = (text(PARTITION), text(SIZE));
    query::allocatable_machines(&world.tables, &partition, &size).count()
}

/// A request for machine 1 by its id.
fn by_id() -> AllocateMachine {
    AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(1)
    }
}

#[test]
fn a_machine_that_its_node_withholds_is_on_offer_to_nobody() {
    for (content, reason) in [
        (maintained("fan"), "it is in maintenance: fan"),
        (retired(""), "it is retired"),
        (staged(ProvisionState::Manageable), "manageable"),
        (staged(ProvisionState::InspectFailed), "inspect failed"),
    ] {
        let mut world = World::new();
        world.waiting(1);
        world.ok(capable(1, "gold", &["CUSTOM_A"]));
        assert_eq!(offered(&world), 1);
        world.change_node(1, content);
        assert!(world.machine(1).withheld);
        assert_eq!(offered(&world), 0, "{reason}");
        let obstacle = query::machine_obstacle(&world.tables, id(1)).unwrap();
        assert!(obstacle.contains(reason), "{obstacle}");
        let by_size = world.refused(allocation_of(1));
        assert_eq!(by_size, ErrorCode::NoMachineAvailable);
        let error = world.error(by_id());
        assert_eq!(error.code, ErrorCode::MachineNotReady);
        assert!(error.message.contains(reason), "{error}");
        let held = world
            .ok(wanted(60, None, "gold"))
            .node_allocation()
            .unwrap();
        assert!(held.machine.is_none() && held.last_error.contains("0 of them are free"));

        world.change_node(1, NodeContent::default());
        assert!(!world.machine(1).withheld);
        assert_eq!(offered(&world), 1, "{reason}");
        let held = world
            .ok(wanted(61, None, "gold"))
            .node_allocation()
            .unwrap();
        assert_eq!(held.machine, Some(id(1)));
    }
}

#[test]
fn a_machine_that_is_provided_is_on_offer_once_it_is_clean() {
    let mut world = World::new();
    world.seen(1);
    world.change_node(1, staged(ProvisionState::CleanWait));
    assert!(!world.machine(1).withheld);
    world.waiting(1);
    assert_eq!(offered(&world), 1);
    world.ok(by_id());
}

#[test]
fn a_machine_in_use_stays_in_use() {
    let mut world = World::new();
    world.running(1, 1);
    world.change_node(1, maintained("fan"));
    assert_eq!(world.phase(1), Phase::Running);
    world.free(1);
    let last = world.machine(1);
    assert!(last.withheld && last.is_leaving());
}

#[test]
fn a_stage_fits_what_the_machine_is_used_for() {
    use ProvisionState::{Manageable, ServiceHold, Servicing};
    let refusal = |world: &mut World, state| {
        let op = world.change(1, staged(state));
        world.apply(op).result.err().map(|error| error.code)
    };
    let mut world = World::new();
    world.waiting(1);
    let unused = Some(ErrorCode::MachineNotAllocated);
    assert_eq!(refusal(&mut world, Servicing), unused);

    world.ok(owner(1, Some(OWNER)));
    world.ok(capable(1, "gold", &[]));
    world.ok(wanted(60, Some(OWNER), "gold"));
    let held = Some(ErrorCode::MachineReserved);
    assert_eq!(refusal(&mut world, Manageable), held);
    world.ok(DeleteNodeAllocation {
        id: id(60),
        project: None,
    });
    world.ok(owner(1, None));

    world.ok(by_id());
    world.install(1, 1);
    world.phone_home(1);
    let used = Some(ErrorCode::MachineAllocated);
    assert_eq!(refusal(&mut world, Manageable), used);
    assert_eq!(refusal(&mut world, ServiceHold), None);
    assert!(!world.machine(1).withheld);
    // It ends with the use.
    world.free(1);
    assert_eq!(world.node(1).content.stage, None);
    assert_eq!(refusal(&mut world, Servicing), unused);
    assert_eq!(refusal(&mut world, Manageable), used);
    world.change_node(1, NodeContent::default());
}

#[test]
fn a_stage_that_stays_is_not_judged_again() {
    let mut world = World::new();
    world.waiting(1);
    world.change_node(1, staged(ProvisionState::CleanWait));
    world.ok(by_id());
    let kept = NodeContent {
        description: "text".into(),
        ..staged(ProvisionState::CleanWait)
    };
    world.change_node(1, kept);
    let other = world.change(1, staged(ProvisionState::Manageable));
    assert_eq!(world.refused(other), ErrorCode::MachineAllocated);
}
