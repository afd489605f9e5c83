//! Changes, loading, hashes: what the store lives on.

use control_state::*;

use crate::world::*;

#[test]
fn changes_carry_everything() {
    let mut world = World::empty();
    let mut replica = Tables::new();
    let mut follow = |outcome: &Outcome| {
        for change in &outcome.changes {
            match &change.record {
                Some(record) => {
                    assert_eq!(
                        (record.kind(), record.key()),
                        (change.kind, change.key.clone())
                    );
                    replica
                        .load(change.kind, &record.encode().unwrap(), change.revision)
                        .unwrap();
                }
                None => panic!("nothing is deleted here"),
            }
        }
        replica.set_revision(outcome.revision);
    };
    follow(&world.apply(CreatePartition(partition(PARTITION))));
    let seen_at = world.now;
    let seen = MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: None,
    };
    follow(&world.apply(seen));
    follow(&world.apply(registration(1, "boot-1")));
    assert_eq!(world.tables.revision(), 3);
    assert_eq!(replica, world.tables);
    assert_eq!(
        replica.state_hash().unwrap(),
        world.tables.state_hash().unwrap()
    );
}

#[test]
fn a_dump_loads_with_its_indexes() {
    let mut world = World::new();
    world.running(1, 1);
    world.running(2, 2);
    world.free(2);
    let mut restored = Tables::new();
    for (record, revision) in Kind::ALL
        .iter()
        .flat_map(|kind| world.tables.records(*kind))
    {
        restored
            .load(record.kind(), &record.encode().unwrap(), revision)
            .unwrap();
    }
    restored.set_revision(world.tables.revision());
    assert_eq!(
        restored.state_hash().unwrap(),
        world.tables.state_hash().unwrap()
    );
    let mut other = World::of(restored, world.now);
    for world in [&mut world, &mut other] {
        world.bmc(BmcAction::PowerOff, None);
        world.switch_obeys();
        world.waiting(3);
        world.allocate(3);
    }
    assert_eq!(
        other.tables.state_hash().unwrap(),
        world.tables.state_hash().unwrap()
    );
}

#[test]
fn objects_have_the_revision_of_their_last_change() {
    let mut world = World::empty();
    let made = world.apply(CreatePartition(partition(PARTITION)));
    let [change] = made.changes.as_slice() else {
        panic!("{made:?}")
    };
    assert_eq!((change.revision, &change.before), (1, &None));
    let revision = |world: &World| {
        let key = text(PARTITION);
        world.tables.revision_of::<Partition>(&key)
    };
    assert_eq!(revision(&world), Some(1));
    // What is refused leaves revisions alone, also those of objects that it had touched.
    assert!(
        world
            .apply(CreatePartition(partition(PARTITION)))
            .result
            .is_err()
    );
    let _other = world.apply(CreatePartition(partition("other")));
    assert_eq!((revision(&world), world.tables.revision()), (Some(1), 2));
    let gone = world.apply(DeletePartition(text(PARTITION)));
    let [change] = gone.changes.as_slice() else {
        panic!("{gone:?}")
    };
    assert_eq!((change.revision, &change.record), (3, &None));
    assert!(change.before.is_some());
    assert_eq!(revision(&world), None);
}

#[test]
fn commands_survive_their_encoding() {
    let command = Command::new(ms(5), "me", allocation_of(1));
    let mut bytes = Vec::new();
    ciborium::into_writer(&command, &mut bytes).unwrap();
    let back: Command = ciborium::from_reader(bytes.as_slice()).unwrap();
    assert_eq!(back, command);
    let debug = format!(
        "{:?}",
        Command::new(
            ms(5),
            "me",
            AllocateMachine {
                userdata: "hush".into(),
                ..allocation_of(1)
            }
        )
    );
    assert!(!debug.contains("hush"), "{debug}");
    let debug = format!("{:?}", installed(1, 1));
    assert!(!debug.contains("\"secret\""), "{debug}");
}

#[test]
fn newer_commands_are_refused() {
    let mut tables = Tables::new();
    let mut command = Command::new(ms(5), "me", CreatePartition(partition(PARTITION)));
    command.version = FEATURE_LEVEL + 1;
    let outcome = apply(&mut tables, &command);
    assert_eq!(
        outcome.result.unwrap_err().code,
        ErrorCode::UnsupportedVersion
    );
    assert_eq!(outcome.revision, 0);
}

#[test]
fn replies_survive_their_encoding() {
    let mut world = World::new();
    world.waiting(1);
    let reply = world.ok(allocation_of(1));
    let mut bytes = Vec::new();
    ciborium::into_writer(&reply, &mut bytes).unwrap();
    let back: Reply = ciborium::from_reader(bytes.as_slice()).unwrap();
    assert_eq!(back, reply);
    assert_eq!(reply.network().unwrap_err().code, ErrorCode::Internal);
}

#[test]
fn kinds_have_names_that_read_back() {
    for kind in Kind::ALL {
        assert_eq!(kind.as_str().parse::<Kind>().unwrap(), *kind);
    }
    assert!(Tables::new().load(Kind::Machine, b"rubbish", 1).is_err());
}
