//! Invariants of nodes and documents, over random sequences of commands.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Machines with a card each.
const MACHINES: u128 = 4;
/// The ids that clients choose for nodes before they are seen.
const CHOSEN: std::ops::RangeInclusive<u128> = 50..=52;

/// The fields of a content, by small numbers.
#[derive(Debug, Clone)]
struct Wish {
    name: Option<u8>,
    card: Option<u128>,
    parent: Option<u128>,
    chassis: Option<u128>,
    hold: u8,
}

#[derive(Debug, Clone)]
enum Step {
    Enrol(u128, Option<u128>, bool, Wish),
    Set(u128, Wish),
    Delete(u128),
    Seen(u128),
    Boot(u128, u8),
    Ready(u128),
    Allocate(u64),
    Free(u128),
    Owner(u128, Option<u128>),
    Wipe(u128),
    Document(u128, usize, Option<u128>),
    Forget(u128),
    Project,
    Tick(u64),
}

fn wish() -> impl Strategy<Value = Wish> {
    let maybe = |from: u128, to: u128| proptest::option::of(from..=to);
    let name = proptest::option::of(0..4u8);
    let hold = prop_oneof![4 => Just(0u8), 1 => 1..=5u8];
    (name, maybe(1, MACHINES), maybe(1, 52), maybe(60, 63), hold).prop_map(
        |(name, card, parent, chassis, hold)| Wish {
            name,
            card,
            // Most are no machines: a parent has to be one.
            parent: parent.filter(|number| *number <= MACHINES || *number >= 50),
            chassis,
            hold,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let machine = || 1..=MACHINES;
    let node = || prop_oneof![1..=MACHINES, CHOSEN];
    let owner = || proptest::option::of(1..=2u128);
    prop_oneof![
        6 => (node(), owner(), any::<bool>(), wish())
            .prop_map(|(n, p, by_owner, wish)| Step::Enrol(n, p, by_owner, wish)),
        6 => (node(), wish()).prop_map(|(n, wish)| Step::Set(n, wish)),
        2 => node().prop_map(Step::Delete),
        2 => machine().prop_map(Step::Seen),
        6 => (machine(), 0..3u8).prop_map(|(m, boot)| Step::Boot(m, boot)),
        4 => machine().prop_map(Step::Ready),
        3 => any::<u64>().prop_map(Step::Allocate),
        2 => machine().prop_map(Step::Free),
        2 => (node(), owner()).prop_map(|(n, p)| Step::Owner(n, p)),
        2 => node().prop_map(Step::Wipe),
        4 => (60..=63u128, 0..4usize, owner()).prop_map(|(n, kind, p)| Step::Document(n, kind, p)),
        2 => (60..=63u128).prop_map(Step::Forget),
        1 => Just(Step::Project),
        2 => (0..3 * HOUR_MS).prop_map(Step::Tick),
    ]
}

fn content(wish: &Wish) -> NodeContent {
    let held = match wish.hold {
        1 => maintained("fan"),
        2 => staged(ProvisionState::Manageable),
        3 => staged(ProvisionState::CleanWait),
        4 => staged(ProvisionState::ServiceHold),
        5 => NodeContent {
            retired: Some("old".into()),
            ..NodeContent::default()
        },
        _ => NodeContent::default(),
    };
    let port = |number: u128| NodePort {
        id: Some(id(70 + number)),
        name: format!("port-{number}"),
        group: Some(id(80 + number)),
        ..NodePort::default()
    };
    let named_group = |number: u128| NodePortGroup {
        name: format!("group-{number}"),
        ..group(80 + number)
    };
    NodeContent {
        name: wish.name.map(|number| format!("node-{number}")),
        instance: wish.name.map(|number| id(90 + u128::from(number))),
        parent: wish.parent.map(id),
        chassis: wish.chassis.map(id),
        ports: wish
            .card
            .map(|number| (mac(number), port(number)))
            .into_iter()
            .collect(),
        groups: wish.card.map(named_group).into_iter().collect(),
        ..held
    }
}

/// The commands of a step.
fn ops(world: &World, step: &Step, counter: u128) -> Vec<Op> {
    let op: Op = match step {
        Step::Enrol(number, owner, by_owner, wish) => EnrolNode {
            project: owner.filter(|_| *by_owner).map(id),
            owner: owner.map(id),
            content: content(wish),
            ..enrol(*number)
        }
        .into(),
        Step::Set(number, wish) => world.change(*number, content(wish)).into(),
        Step::Delete(number) => DeleteMachine { id: id(*number) }.into(),
        Step::Seen(number) => seen(world, *number).into(),
        Step::Boot(number, boot) => {
            let registration = registration(*number, &format!("boot-{boot}"));
            return vec![seen(world, *number).into(), registration.into()];
        }
        Step::Ready(number) => {
            let wiped = WipeDone {
                id: id(*number),
                disks: vec![wiped("/dev/vda", None)],
            };
            let waits = MachineEvent {
                id: id(*number),
                kind: EventKind::Waiting,
                message: String::new(),
                time: world.now,
            };
            return vec![wiped.into(), waits.into()];
        }
        Step::Allocate(seed) => AllocateMachine {
            seed: *seed,
            ..allocation_of(counter)
        }
        .into(),
        Step::Free(number) => FreeMachine {
            id: id(*number),
            project: Some(id(1)),
        }
        .into(),
        Step::Owner(number, owner) => SetMachineOwner {
            machine: id(*number),
            owner: owner.map(id),
        }
        .into(),
        Step::Wipe(number) => WipeNode {
            machine: id(*number),
        }
        .into(),
        other => op_of_documents(world, other),
    };
    vec![op]
}

fn op_of_documents(world: &World, step: &Step) -> Op {
    match step {
        Step::Document(number, kind, owner) => {
            let known = world.tables.get::<NodeDocument>(&id(*number));
            SetNodeDocument {
                expected: known.map_or(0, |known| known.meta.generation),
                name: "CUSTOM_A".to_owned(),
                owner: owner.map(id),
                ..document(*number, DocumentKind::ALL[*kind])
            }
            .into()
        }
        Step::Forget(number) => DeleteNodeDocument { id: id(*number) }.into(),
        Step::Project => DeleteProject { id: id(2) }.into(),
        _ => Tick::default().into(),
    }
}

fn seen(world: &World, number: u128) -> MachineSeen {
    MachineSeen {
        id: id(number),
        partition: text(PARTITION),
        mac: Some(mac(number)),
        seen_at: world.now,
        stated_at: None,
        to_disk: false,
        relayed: None,
    }
}

fn check_nodes(tables: &Tables) {
    let (mut names, mut cards, mut aliases) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for record in tables.all::<NodeRecord>() {
        let machine = tables.get::<Machine>(&record.machine);
        let machine = machine.unwrap_or_else(|| panic!("without a machine: {record:?}"));
        assert_eq!(machine.withheld, record.content.withholds(), "{record:?}");
        if let Some(alias) = record.alias {
            assert!(aliases.insert(alias), "an id of two nodes: {record:?}");
            assert_eq!(query::node_of_alias(tables, alias), Some(record.machine));
        }
        if let Some(name) = &record.content.name {
            assert!(names.insert(name), "a name twice: {record:?}");
            assert_eq!(query::node_named(tables, name), Some(record.machine));
        }
        for card in record.content.ports.keys() {
            assert!(cards.insert(*card), "a port of two nodes: {record:?}");
            assert_eq!(query::described_port(tables, *card), Some(record.machine));
        }
        let parent = record.content.parent;
        let is_there = parent.is_none_or(|parent| tables.get::<Machine>(&parent).is_some());
        assert!(is_there && parent != Some(record.machine), "{record:?}");
        let chassis = record.content.chassis;
        let is_there = chassis.is_none_or(|id| tables.get::<NodeDocument>(&id).is_some());
        assert!(is_there, "{record:?}");
    }
    let (partition, size) = (text(PARTITION), text(SIZE));
    for machine in query::allocatable_machines(tables, &partition, &size) {
        assert!(!machine.withheld, "on offer: {machine:?}");
    }
    for machine in tables
        .all::<Machine>()
        .filter(|machine| machine.unconfirmed)
    {
        let is_claimed = machine.is_unseen() && machine.tenure.owner.is_some();
        assert!(is_claimed, "seen, and a project's by its word: {machine:?}");
    }
    for machine in tables.all::<Machine>().filter(|machine| machine.withheld) {
        let record = tables.get::<NodeRecord>(&machine.id);
        assert!(record.is_some(), "withheld by nobody: {machine:?}");
    }
}

fn check_documents(tables: &Tables) {
    let mut names = BTreeSet::new();
    for document in tables.all::<NodeDocument>() {
        let owner = document.owner;
        assert!(owner.is_none_or(|owner| tables.get::<Project>(&owner).is_some()));
        let is_unique = names.insert((document.kind, &document.name));
        assert!(
            is_unique || !document.kind.has_unique_names(),
            "{document:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn nodes_follow_their_machines(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        let mut replica = world.tables.clone();
        for (counter, step) in steps.iter().enumerate() {
            world.later(match step { Step::Tick(by_ms) => *by_ms, _ => 1000 });
            for op in ops(&world, step, counter as u128 + 1000) {
                let before = world.tables.clone();
                let command = Command::new(world.now, "random", op);
                let outcome = apply(&mut world.tables, &command);
                if outcome.result.is_err() {
                    prop_assert_eq!(&world.tables, &before);
                }
                prop_assert_eq!(&apply(&mut replica, &command), &outcome);
            }
            check_nodes(&world.tables);
            check_documents(&world.tables);
        }
        prop_assert_eq!(replica.state_hash().unwrap(), world.tables.state_hash().unwrap());
        // The indexes are those that loading makes.
        let mut loaded = Tables::new();
        for kind in Kind::ALL {
            for (record, revision) in world.tables.records(*kind) {
                loaded.load(*kind, &record.encode().unwrap(), revision).unwrap();
            }
        }
        prop_assert_eq!(loaded.indexes(), world.tables.indexes());
    }
}
