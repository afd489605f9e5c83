//! Which machine a request gets: racks, placement labels, reservations.

use crate::world::*;
use control_state::*;

#[test]
fn racks_are_filled_evenly() {
    let mut world = World::new();
    for (name, rack) in [("leaf1", "rack-1"), ("leaf2", "rack-2")] {
        world.ok(leaf(name, rack));
    }
    for number in 1..=4 {
        world.waiting(number);
        let mut registration = registration(number, "boot-1");
        let leaf = if number <= 2 { "leaf1" } else { "leaf2" };
        registration.hardware.nics[0].neighbours[0].system_name = leaf.into();
        world.hear("leaf1", &format!("swp{number}"), &[]);
        world.hear(leaf, &format!("swp{number}"), &[mac(number)]);
        world.ok(registration);
    }
    let racks: Vec<_> = (1..=4u64)
        .map(|n| {
            let op = AllocateMachine {
                seed: n * 7,
                ..allocation_of(u128::from(n))
            };
            world.ok(op).machine().unwrap().rack.clone()
        })
        .collect();
    assert_ne!(racks[0], racks[1]);
    assert_ne!(racks[2], racks[3]);
    assert_eq!(
        world.refused(allocation_of(5)),
        ErrorCode::NoMachineAvailable
    );
}

#[test]
fn racks_are_filled_evenly_by_placement_labels() {
    let mut world = World::new();
    for (name, rack) in [("leaf1", "rack-1"), ("leaf2", "rack-2")] {
        world.ok(leaf(name, rack));
    }
    for number in 1..=6 {
        world.waiting(number);
        let mut registration = registration(number, "boot-1");
        let leaf = if number <= 3 { "leaf1" } else { "leaf2" };
        registration.hardware.nics[0].neighbours[0].system_name = leaf.into();
        world.hear("leaf1", &format!("swp{number}"), &[]);
        world.hear(leaf, &format!("swp{number}"), &[mac(number)]);
        world.ok(registration);
    }
    let front: Labels = [("tier".to_owned(), "front".to_owned())].into();
    let of = |allocation, machine: Option<u128>, placement_labels: &Labels| AllocateMachine {
        machine: machine.map(id),
        partition: machine.is_none().then(|| text(PARTITION)),
        size: machine.is_none().then(|| text(SIZE)),
        placement_labels: placement_labels.clone(),
        ..allocation_of(allocation)
    };
    world.ok(of(1, Some(1), &front));
    world.ok(of(2, Some(4), &Labels::new()));
    world.ok(of(3, Some(5), &Labels::new()));
    // The second rack has more of the project, but none with these labels.
    let labelled = world.ok(of(4, None, &front)).machine().unwrap();
    assert_eq!(labelled.rack, "rack-2");
    let plain = world.ok(of(5, None, &Labels::new())).machine().unwrap();
    assert_eq!(plain.rack, "rack-1");
}

#[test]
fn reservations_are_kept() {
    let mut world = World::new();
    world.waiting(1);
    world.waiting(2);
    world.ok(child("other", 2));
    world.ok(CreateSizeReservation(SizeReservation {
        id: id(77),
        meta: Meta::default(),
        name: "for two".into(),
        description: String::new(),
        project: id(2),
        size: text(SIZE),
        partitions: [text(PARTITION)].into(),
        amount: 1,
    }));
    world.allocate(1);
    assert_eq!(world.refused(allocation_of(2)), ErrorCode::SizeReserved);
    world.ok(AllocateMachine {
        project: id(2),
        networks: vec![WantedNetwork {
            network: text("other"),
            ips: vec![],
        }],
        ..allocation_of(2)
    });
}
