//! Nodes before and after their machines are seen, and their end.

use super::*;

#[test]
fn a_node_is_enrolled_before_its_machine_is_seen() {
    let mut world = World::new();
    let op = EnrolNode {
        owner: Some(id(2)),
        resource_class: Some("gold".parse().unwrap()),
        content: called("web"),
        ..enrol(50)
    };
    let record = world.ok(op.clone()).node_record().unwrap();
    assert_eq!(
        (record.machine, record.meta.generation, record.alias),
        (id(50), 1, None)
    );
    let machine = world.machine(50);
    assert!(machine.is_unseen() && !machine.withheld);
    assert_eq!(machine.phase, Phase::New);
    assert_eq!(machine.tenure.owner, Some(id(2)));
    let class = machine.capability.resource_class.as_ref().unwrap();
    assert_eq!(class.as_str(), "gold");
    assert_eq!(world.named_node("web"), Some(50));
    assert_eq!(world.refused(op), ErrorCode::AlreadyExists);
    // It stays: somebody announced it.
    world.tick(2 * HOUR_MS);
    assert!(world.has_machine(50));
    assert_eq!(strangers(&world.tables), []);
}

#[test]
fn its_machine_goes_on_under_the_same_id() {
    let mut world = World::new();
    world.ok(EnrolNode {
        content: called("web"),
        ..enrol(5)
    });
    world.waiting(5);
    let machine = world.machine(5);
    assert!(machine.enrolled && !machine.is_unseen());
    assert_eq!(machine.partition, Some(text(PARTITION)));
    assert_eq!(world.named_node("web"), Some(5));
    assert_eq!(world.node(5).meta.generation, 1);
    world.ok(allocation_of(1));
    assert_eq!(world.phase(5), Phase::Installing);
}

#[test]
fn a_known_machine_is_enrolled_for_its_owner_alone() {
    let mut world = World::new();
    world.waiting(1);
    let of = |owner: Option<u128>| EnrolNode {
        owner: owner.map(id),
        resource_class: Some("gold".parse().unwrap()),
        ..enrol(1)
    };
    let error = world.error(of(Some(2)));
    assert_eq!(error.code, ErrorCode::AlreadyExists);
    assert!(error.hint.contains("machine owner set"), "{error}");
    world.ok(SetMachineOwner {
        machine: id(1),
        owner: Some(id(2)),
    });
    assert_eq!(world.refused(of(Some(1))), ErrorCode::AlreadyExists);
    let mut by_site = world.clone();
    world.ok(of(Some(2)));
    by_site.ok(of(None));
    for world in [world, by_site] {
        let machine = world.machine(1);
        assert_eq!(machine.tenure.owner, Some(id(2)), "the owner stays");
        assert!(machine.enrolled && machine.phase == Phase::Waiting);
        assert!(machine.capability.resource_class.is_some());
    }
}

#[test]
fn what_is_wrong_with_an_enrolment() {
    let mut world = World::new();
    world.waiting(1);
    world.ok(EnrolNode {
        content: called("web"),
        ..enrol(50)
    });
    type Change = fn(&mut EnrolNode);
    let cases: [(Change, ErrorCode); 5] = [
        (|op| op.owner = Some(id(9)), ErrorCode::NotFound),
        (|op| op.content = called("web"), ErrorCode::AlreadyExists),
        // A card that a machine has registered.
        (|op| op.content = with_card(1), ErrorCode::AlreadyExists),
        (|op| op.content = called("no name"), ErrorCode::InvalidField),
        (
            |op| op.content = staged(ProvisionState::Servicing),
            ErrorCode::MachineNotAllocated,
        ),
    ];
    for (at, (change, code)) in cases.into_iter().enumerate() {
        let mut op = enrol(51);
        change(&mut op);
        assert_eq!(world.refused(op), code, "case {at}");
    }
    world.ok(enrol(51));
}

#[test]
fn a_project_enrols_so_many_machines_that_nobody_sees() {
    let mut world = World::new();
    let of_project = |number| EnrolNode {
        owner: Some(id(1)),
        ..enrol(number)
    };
    world.ok(of_project(1_000));
    let machine = world.machine(1_000).clone();
    // As if they had been enrolled one by one.
    for number in 1..1_000 {
        let machine = Machine {
            id: id(1_000 + number),
            ..machine.clone()
        };
        let record = Record::Machine(machine.into());
        let bytes = record.encode().unwrap();
        world.tables.load(record.kind(), &bytes, 1).unwrap();
    }
    let mut world = World::of(world.tables, world.now);
    assert_eq!(world.refused(of_project(5_000)), ErrorCode::TooMany);
    // The site has a bound of its own.
    world.ok(enrol(5_000));
    // One that is seen makes room for another.
    world.ok(MachineSeen {
        id: id(1_000),
        partition: text(PARTITION),
        mac: Some(mac(9)),
        seen_at: world.now,
        stated_at: None,
        to_disk: false,
        relayed: None,
    });
    world.ok(of_project(5_001));
    assert_eq!(world.refused(of_project(5_002)), ErrorCode::TooMany);
}

#[test]
fn a_machine_that_a_client_describes_is_not_forgotten() {
    let mut world = World::new();
    world.seen(7);
    world.seen(8);
    world.change_node(7, called("web"));
    world.tick(2 * HOUR_MS);
    assert!(world.has_machine(7));
    assert!(!world.has_machine(8));
}

#[test]
fn a_node_ends_with_its_machine() {
    let mut world = World::new();
    world.ok(EnrolNode {
        content: called("shelf"),
        ..enrol(50)
    });
    let part = NodeContent {
        parent: Some(id(50)),
        ..called("blade")
    };
    world.ok(EnrolNode {
        content: part,
        ..enrol(51)
    });
    let children: Vec<MachineId> = query::node_children(&world.tables, id(50)).collect();
    assert_eq!(children, [id(51)]);
    world.ok(DeleteMachine { id: id(50) });
    assert!(world.tables.get::<NodeRecord>(&id(50)).is_none());
    assert_eq!(world.named_node("shelf"), None);
    assert_eq!(world.node(51).content.parent, None);
    assert_eq!(query::node_children(&world.tables, id(50)).count(), 0);
    // The name is free again.
    world.ok(EnrolNode {
        content: called("shelf"),
        ..enrol(52)
    });
}
