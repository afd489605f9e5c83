//! Which project gets a machine that is owned or leased.

use super::*;

/// Project 2 wants machine 1.
fn named_by_owner(world: &mut World, allocation: u128) -> AllocateMachine {
    if world.tables.get::<Network>(&text("other")).is_none() {
        world.ok(child("other", OWNER));
    }
    AllocateMachine {
        project: id(OWNER),
        networks: vec![WantedNetwork {
            network: text("other"),
            ips: vec![],
        }],
        ..named(allocation)
    }
}

#[test]
fn an_owned_machine_is_on_offer_to_nobody_else() {
    let mut world = owned();
    let (partition, size) = (text(PARTITION), text(SIZE));
    let offered = query::allocatable_machines(&world.tables, &partition, &size);
    assert_eq!(offered.count(), 0);
    assert_eq!(
        world.refused(allocation_of(1)),
        ErrorCode::NoMachineAvailable
    );
    // By its id it is not there: the same words as for a machine that does not exist.
    let foreign = world.error(named(1));
    let absent = world.error(AllocateMachine {
        machine: Some(id(9)),
        ..named(1)
    });
    let same = |error: &StateError, machine: u128| {
        let machine: MachineId = id(machine);
        let plain = |text: &str| text.replace(&machine.to_string(), "");
        (error.code, plain(&error.message), error.hint.clone())
    };
    assert_eq!(same(&foreign, 1), same(&absent, 9));
    let by_owner = named_by_owner(&mut world, 1);
    let machine = world.ok(by_owner).machine().unwrap();
    assert_eq!(machine.allocation.as_ref().unwrap().project, id(OWNER));
}

#[test]
fn a_leased_machine_is_its_lessees_alone() {
    let mut world = leased();
    let by_owner = named_by_owner(&mut world, 1);
    let refused = world.error(by_owner.clone());
    assert_eq!(refused.code, ErrorCode::MachineLeased);
    world.use_machine(1);
    // The lessee frees and installs as often as it wants; the lease runs on.
    world.free(1);
    assert!(world.lease().is_some());
    assert_eq!(world.error(by_owner).code, ErrorCode::MachineLeased);
}

#[test]
fn a_tainted_machine_is_not_handed_to_its_owner() {
    let mut world = owned();
    world.ok(SetMachineState {
        id: id(1),
        state: Availability::Tainted,
        description: "loud".into(),
    });
    let by_owner = named_by_owner(&mut world, 1);
    assert_eq!(world.refused(by_owner), ErrorCode::MachineNotReady);
}

#[test]
fn a_machine_of_its_own_uses_no_reservation_up() {
    let mut world = owned();
    world.waiting(2);
    let reservation = SizeReservation {
        id: id(70),
        meta: Meta::default(),
        name: "kept".into(),
        description: String::new(),
        project: id(OWNER),
        size: text(SIZE),
        partitions: [text(PARTITION)].into(),
        amount: 1,
    };
    world.ok(CreateSizeReservation(reservation));
    let by_owner = named_by_owner(&mut world, 1);
    world.ok(by_owner);
    assert_eq!(world.refused(allocation_of(2)), ErrorCode::SizeReserved);
}

#[test]
fn the_site_gets_back_what_it_gave() {
    let mut world = owned();
    world.ok(owner(1, None));
    world.allocate(1);
}

/// A permit is judged again when its command is applied: the machine may be another project's by then.
#[test]
fn an_order_of_an_owner_does_not_reach_the_machine_of_its_lessee() {
    let order = |user: u128| OrderBmc {
        machine: id(1),
        project: None,
        user: Some(id(user)),
        action: BmcAction::PowerOff,
        description: String::new(),
    };
    let mut world = owned();
    assert_eq!(world.refused(order(STRANGER)), ErrorCode::NotFound);
    world.clone().ok(order(OWNER));
    let lease = grant(&world);
    world.ok(lease);
    assert_eq!(world.refused(order(OWNER)), ErrorCode::NotFound);
    world.clone().ok(order(LESSEE));
    world.use_machine(7);
    assert_eq!(world.refused(order(OWNER)), ErrorCode::NotFound);
    world.ok(order(LESSEE));
}
