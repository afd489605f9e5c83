//! The wipe of a free machine that a client asks for.

use super::*;
use crate::leases::{OWNER, owner};
use crate::node_allocations::{capable, wanted};

const WIPE: WipeNode = WipeNode {
    machine: MachineId::new(Uuid::from_u128(1)),
};

fn set_state(state: Availability, description: &str) -> SetMachineState {
    SetMachineState {
        id: id(1),
        state,
        description: description.to_owned(),
    }
}

#[test]
fn a_free_machine_is_wiped_and_comes_back() {
    let mut world = World::new();
    world.waiting(1);
    let machine = world.ok(WIPE).machine().unwrap();
    assert!(machine.dirty && machine.clean_disks.is_empty());
    assert_eq!(
        world.open_orders(),
        [BmcAction::BootPxe, BmcAction::PowerCycle]
    );
    let (partition, size) = (text(PARTITION), text(SIZE));
    let offered = query::allocatable_machines(&world.tables, &partition, &size);
    assert_eq!(offered.count(), 0);
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerCycle, None);
    world.boot(1, "boot-2");
    assert_eq!(world.phase(1), Phase::Wiping);
    // It is on its way: a repeated call orders nothing.
    assert_eq!(world.apply(WIPE).changes, []);
    world.wipe(1);
    world.event(1, EventKind::Waiting);
    assert_eq!(world.phase(1), Phase::Waiting);
    assert_eq!(world.machine(1).wipes.len(), 2);
    world.ok(allocation_of(1));
}

#[test]
fn a_machine_that_was_only_seen_is_booted() {
    let mut world = World::new();
    world.seen(1);
    world.ok(WIPE);
    assert_eq!(
        world.open_orders(),
        [BmcAction::BootPxe, BmcAction::PowerCycle]
    );
}

#[test]
fn whose_machine_is_not_wiped() {
    type Prepare = fn(&mut World);
    let cases: [(Prepare, ErrorCode); 8] = [
        (|_| {}, ErrorCode::NotFound),
        (|world| drop(world.ok(enrol(1))), ErrorCode::NoBmc),
        (|world| world.running(1, 1), ErrorCode::MachineAllocated),
        (
            |world| {
                world.running(1, 1);
                world.free(1);
            },
            ErrorCode::MachineAllocated,
        ),
        (
            |world| {
                world.waiting(1);
                world.ok(owner(1, Some(OWNER)));
                world.ok(capable(1, "gold", &[]));
                world.ok(wanted(60, Some(OWNER), "gold"));
            },
            ErrorCode::MachineReserved,
        ),
        (
            |world| {
                world.waiting(1);
                world.ok(empty_pool("shared"));
                world.ok(pool_host(1, "shared"));
            },
            ErrorCode::HostOfPool,
        ),
        (
            |world| {
                world.waiting(1);
                world.ok(set_state(Availability::Locked, "evidence"));
            },
            ErrorCode::MachineLocked,
        ),
        (
            |world| {
                world.boot(1, "boot-1");
                world.ok(WipeDone {
                    id: id(1),
                    disks: vec![wiped("/dev/vda", Some("broken"))],
                });
            },
            ErrorCode::WrongPhase,
        ),
    ];
    for (at, (prepare, code)) in cases.into_iter().enumerate() {
        let mut world = World::new();
        prepare(&mut world);
        assert_eq!(world.refused(WIPE), code, "case {at}");
    }
}
