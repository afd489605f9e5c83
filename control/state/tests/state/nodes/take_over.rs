//! A machine takes over the node that was enrolled for one of its cards.

use super::*;
use crate::node_allocations::capable;

/// A node of an id that a client chose, for the card of machine 3.
fn for_card() -> EnrolNode {
    EnrolNode {
        owner: Some(id(2)),
        resource_class: Some("gold".parse().unwrap()),
        content: NodeContent {
            name: Some("web".to_owned()),
            ..with_card(3)
        },
        ..enrol(50)
    }
}

#[test]
fn a_machine_takes_over_its_node() {
    let mut world = World::new();
    world.ok(for_card());
    world.ok(EnrolNode {
        content: NodeContent {
            parent: Some(id(50)),
            ..NodeContent::default()
        },
        ..enrol(51)
    });
    world.ok(GrantLease {
        id: id(500),
        machine: id(50),
        project: id(2),
        lessee: id(1),
        expires_at: world.now.plus_ms(HOUR_MS),
        extendable_until: None,
        warning_ms: None,
        comment: String::new(),
    });
    // Any host of the segment can send a boot request with any address.
    world.seen(3);
    assert!(world.has_machine(50));
    assert_eq!(world.machine(3).tenure.owner, None);

    world.boot(3, "boot-1");
    assert!(!world.has_machine(50));
    let machine = world.machine(3);
    assert!(machine.enrolled && !machine.withheld);
    assert_eq!(machine.phase, Phase::Wiping);
    assert_eq!(machine.tenure.owner, Some(id(2)));
    assert_eq!(machine.tenure.lessee, Some(id(1)));
    assert!(machine.capability.resource_class.is_some());
    let lease = world.tables.get::<Lease>(&id(3)).unwrap();
    assert_eq!((lease.id, lease.lessee), (id(500), id(1)));
    assert!(world.tables.get::<Lease>(&id(50)).is_none());
    let record = world.node(3);
    assert_eq!(record.alias, Some(uuid(50)));
    assert_eq!(
        record.meta.generation, 2,
        "writers of the old one read again"
    );
    assert_eq!(world.named_node("web"), Some(3));
    assert_eq!(query::described_port(&world.tables, mac(3)), Some(id(3)));
    assert_eq!(query::node_of_alias(&world.tables, uuid(50)), Some(id(3)));
    assert_eq!(world.node(51).content.parent, Some(id(3)));
    // The id stands for this node.
    assert_eq!(world.refused(enrol(50)), ErrorCode::AlreadyExists);

    world.wipe(3);
    world.event(3, EventKind::Waiting);
    world.ok(AllocateMachine {
        machine: Some(id(3)),
        partition: None,
        size: None,
        ..allocation_of(1)
    });
}

#[test]
fn what_an_operator_said_of_the_node_counts() {
    let mut world = World::new();
    let mut op = for_card();
    op.owner = None;
    op.content.maintenance = maintained("fan").maintenance;
    world.ok(op);
    world.ok(SetMachineState {
        id: id(50),
        state: Availability::Tainted,
        description: "new".into(),
    });
    world.ok(empty_pool("shared"));
    world.ok(pool_host(50, "shared"));
    world.waiting(3);
    let machine = world.machine(3);
    assert!(machine.withheld);
    assert_eq!(machine.condition.state, Availability::Tainted);
    assert_eq!(machine.pool, Some(text("shared")));
    let host = world.tables.get::<PoolHost>(&id(3)).unwrap();
    assert!(!host.seen.is_ready);
    assert!(world.tables.get::<PoolHost>(&id(50)).is_none());
}

#[test]
fn a_node_that_turns_out_to_be_its_own_parent_has_none() {
    let mut world = World::new();
    world.seen(3);
    let mut op = for_card();
    op.content.parent = Some(id(3));
    world.ok(op);
    world.boot(3, "boot-1");
    assert_eq!(world.node(3).content.parent, None);
    assert_eq!(query::node_children(&world.tables, id(3)).count(), 0);
}

/// Nobody gets a machine, or another node for it, by a description of its card.
#[test]
fn machines_that_take_over_nothing() {
    type Prepare = fn(&mut World);
    let cases: [(&str, Prepare); 5] = [
        ("a node of its own", |world| {
            world.seen(3);
            world.change_node(3, called("own"));
        }),
        ("an owner", |world| {
            world.seen(3);
            world.ok(SetMachineOwner {
                machine: id(3),
                owner: Some(id(1)),
            });
        }),
        ("a pool", |world| {
            world.seen(3);
            world.ok(empty_pool("shared"));
            world.ok(pool_host(3, "shared"));
        }),
        ("another card", |world| {
            let content = with_card(4);
            world.change_node(50, content);
        }),
        ("an enrolled machine that was seen", |world| {
            world.ok(MachineSeen {
                id: id(50),
                partition: text(PARTITION),
                mac: None,
                seen_at: world.now,
                stated_at: None,
                to_disk: false,
                relayed: None,
            });
        }),
    ];
    for (what, prepare) in cases {
        let mut world = World::new();
        world.ok(for_card());
        prepare(&mut world);
        let before = world
            .tables
            .get::<Machine>(&id(3))
            .map(|machine| machine.tenure.clone());
        world.boot(3, "boot-1");
        assert!(world.has_machine(50), "{what}");
        let machine = world.machine(3);
        assert_eq!(machine.tenure, before.unwrap_or_default(), "{what}");
        assert_eq!(world.node(50).machine, id(50), "{what}");
    }
}

#[test]
fn a_machine_that_registered_before_keeps_its_own_life() {
    let mut world = World::new();
    world.waiting(3);
    world.ok(capable(3, "silver", &[]));
    let mut op = for_card();
    assert_eq!(world.refused(op.clone()), ErrorCode::AlreadyExists);
    // A card that is put into it later.
    op.content = with_card(9);
    world.ok(op);
    let mut registration = registration(3, "boot-2");
    registration.hardware.nics[0].mac = mac(9);
    world.ok(registration);
    assert!(world.has_machine(50));
    assert_eq!(world.machine(3).tenure.owner, None);
    assert!(world.tables.get::<NodeRecord>(&id(3)).is_none());
}
