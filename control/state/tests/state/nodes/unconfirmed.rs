//! Machines that projects enrol on their own word: a claim is not an observation.

use super::*;

/// Project 2 enrols a machine as its own.
fn by_project(number: u128, content: NodeContent) -> EnrolNode {
    EnrolNode {
        project: Some(id(2)),
        owner: Some(id(2)),
        resource_class: Some("gold".parse().unwrap()),
        content,
        ..enrol(number)
    }
}

/// The owner leases a machine to project 1.
fn lease_to_other(world: &mut World, number: u128) {
    world.ok(GrantLease {
        id: id(500),
        machine: id(number),
        project: id(2),
        lessee: id(1),
        expires_at: world.now.plus_ms(HOUR_MS),
        extendable_until: None,
        warning_ms: None,
        comment: String::new(),
    });
}

fn set_owner(number: u128, owner: Option<u128>) -> SetMachineOwner {
    SetMachineOwner {
        machine: id(number),
        owner: owner.map(id),
    }
}

/// The BMC of machine 5 is read.
fn read_bmc(world: &mut World) {
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings: vec![BmcReading {
            machine: Some(id(5)),
            address: "10.0.0.5".into(),
            mac: "02:00:00:00:09:05".into(),
            interface: "ipmi".into(),
            power_state: "on".into(),
            observed_at: world.now,
            ..BmcReading::default()
        }],
    });
}

#[test]
fn a_machine_that_appears_is_not_its_who_enrolled_it_first() {
    type Observe = fn(&mut World);
    let cases: [(&str, Observe); 3] = [
        ("a boot", |world| world.seen(5)),
        ("a BMC", read_bmc),
        ("a registration", |world| {
            world.ok(RegisterMachine {
                seen_in: Some(text(PARTITION)),
                ..registration(5, "boot-1")
            });
        }),
    ];
    for (what, observe) in cases {
        let mut world = World::new();
        world.ok(by_project(5, maintained("mine")));
        lease_to_other(&mut world, 5);
        let machine = world.machine(5);
        assert!(machine.unconfirmed && machine.is_unseen() && machine.withheld);
        assert_eq!(machine.tenure.owner, Some(id(2)));
        observe(&mut world);
        let machine = world.machine(5);
        assert_eq!(machine.tenure, Tenure::default(), "{what}");
        assert_eq!(machine.capability, Capability::default(), "{what}");
        assert!(!machine.unconfirmed && !machine.enrolled && !machine.withheld);
        assert!(world.tables.get::<NodeRecord>(&id(5)).is_none(), "{what}");
        assert!(world.tables.get::<Lease>(&id(5)).is_none(), "{what}");
        // It is a machine of the site like any other.
        world.waiting(5);
        world.ok(allocation_of(1));
        assert_eq!(world.phase(5), Phase::Installing, "{what}");
        // The project is told that it exists, as of any other machine.
        let again = by_project(5, NodeContent::default());
        assert_eq!(world.refused(again), ErrorCode::AlreadyExists);
    }
}

#[test]
fn an_administrator_confirms_what_a_project_said() {
    for owner in [Some(2), Some(1), None] {
        let mut world = World::new();
        world.ok(by_project(5, called("web")));
        world.ok(set_owner(5, owner));
        assert!(!world.machine(5).unconfirmed);
        world.waiting(5);
        let machine = world.machine(5);
        assert_eq!(machine.tenure.owner, owner.map(id), "{owner:?}");
        assert!(machine.enrolled && machine.capability.resource_class.is_some());
        assert_eq!(world.named_node("web"), Some(5));
    }
}

#[test]
fn a_word_of_an_administrator_about_the_machine_outlives_that_of_a_project() {
    let mut world = World::new();
    world.ok(by_project(5, NodeContent::default()));
    world.ok(SetMachineState {
        id: id(5),
        state: Availability::Locked,
        description: "evidence".into(),
    });
    world.seen(5);
    let condition = &world.machine(5).condition;
    assert_eq!(condition.state, Availability::Locked);
}

#[test]
fn a_card_that_a_project_described_gives_it_no_machine() {
    let mut world = World::new();
    world.ok(by_project(50, with_card(3)));
    world.boot(3, "boot-1");
    assert!(world.has_machine(50), "the project's word stays its own");
    assert_eq!(world.machine(3).tenure, Tenure::default());
    assert!(world.tables.get::<NodeRecord>(&id(3)).is_none());
    assert!(world.node(50).content.ports.is_empty());
    // The machine's node may describe its card.
    world.change_node(3, with_card(3));
    assert_eq!(query::described_port(&world.tables, mac(3)), Some(id(3)));
}

#[test]
fn a_card_of_a_node_that_is_confirmed_gives_it_the_machine() {
    let mut world = World::new();
    world.ok(by_project(50, with_card(3)));
    world.ok(set_owner(50, Some(2)));
    world.boot(3, "boot-1");
    assert!(!world.has_machine(50));
    assert_eq!(world.machine(3).tenure.owner, Some(id(2)));
    assert_eq!(world.node(3).alias, Some(uuid(50)));
}

#[test]
fn a_project_enrols_for_itself_alone() {
    let mut world = World::new();
    for owner in [None, Some(id(1))] {
        let op = EnrolNode {
            owner,
            ..by_project(50, NodeContent::default())
        };
        assert_eq!(world.refused(op), ErrorCode::InvalidField);
    }
    // A machine of its own that is known needs no confirmation.
    world.waiting(1);
    world.ok(set_owner(1, Some(2)));
    world.ok(by_project(1, called("web")));
    assert!(!world.machine(1).unconfirmed);
    world.boot(1, "boot-2");
    assert_eq!(world.named_node("web"), Some(1));
}
