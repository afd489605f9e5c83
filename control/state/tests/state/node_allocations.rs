//! Node allocations: which machine they get, and why they get none.

use crate::leases::{
    LESSEE, OWNER, STRANGER, by, end, grant, leased, named, owned, owner, with_machine,
};
use crate::world::*;
use control_state::*;

/// A project, or an administrator, wants a machine of a class.
pub(crate) fn wanted(number: u128, owner: Option<u128>, class: &str) -> CreateNodeAllocation {
    CreateNodeAllocation {
        id: id(number),
        name: None,
        owner: owner.map(id),
        resource_class: Some(class.parse().unwrap()),
        traits: [].into(),
        candidates: [].into(),
        backfill: None,
        extra: [].into(),
        seed: 0,
    }
}

/// An administrator sets class and traits of a machine.
pub(crate) fn capable(machine: u128, class: &str, traits: &[&str]) -> SetMachineCapability {
    SetMachineCapability {
        machine: id(machine),
        project: None,
        resource_class: ClassChange::Set(class.parse().unwrap()),
        traits: Some(TraitsChange::Replace(
            traits.iter().map(|name| name.parse().unwrap()).collect(),
        )),
    }
}

impl World {
    fn hold(&mut self, op: CreateNodeAllocation) -> NodeAllocation {
        let held = self.ok(op).node_allocation().unwrap();
        NodeAllocation::clone(&held)
    }
}

#[test]
fn the_machine_must_be_the_owners_and_of_the_class() {
    for (relation, asked_by, class, is_found) in [
        ("site", None, "gold", true),
        ("site", None, "CUSTOM_GOLD", true),
        ("site", None, "silver", false),
        // Restricted: a project gets no machine of the site.
        ("site", Some(LESSEE), "gold", false),
        ("owned", None, "gold", false),
        ("owned", Some(OWNER), "gold", true),
        ("owned", Some(LESSEE), "gold", false),
        ("leased", None, "gold", false),
        ("leased", Some(OWNER), "gold", false),
        ("leased", Some(LESSEE), "Gold", true),
        ("leased", Some(STRANGER), "gold", false),
    ] {
        let mut world = match relation {
            "site" => with_machine(),
            "owned" => owned(),
            _ => leased(),
        };
        world.ok(capable(1, "gold", &[]));
        let held = world.hold(wanted(60, asked_by, class));
        let case = format!("{relation} {asked_by:?} {class}: {held:?}");
        assert_eq!(held.machine.is_some(), is_found, "{case}");
        assert_eq!(held.last_error.is_empty(), is_found, "{case}");
        let holder = world.machine(1).tenure.reserved_by;
        assert_eq!(holder, is_found.then(|| id(60)), "{case}");
    }
}

#[test]
fn refusals_count_only_what_the_owner_has() {
    let mut world = leased();
    world.waiting(2);
    world.ok(owner(2, Some(OWNER)));
    world.ok(capable(1, "gold", &["CUSTOM_A"]));
    world.ok(capable(2, "gold", &["CUSTOM_A", "CUSTOM_B"]));
    let traits = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let error = |world: &mut World, op| world.hold(op).last_error;
    // The stranger is told of no machine at all.
    let none = error(&mut world, wanted(60, Some(STRANGER), "gold"));
    assert!(none.contains("0 machines of class CUSTOM_GOLD"), "{none}");
    // The lessee has one, which lacks a trait.
    let lacking = CreateNodeAllocation {
        traits: traits(&["CUSTOM_A", "CUSTOM_B"]),
        ..wanted(61, Some(LESSEE), "gold")
    };
    let lacking = error(&mut world, lacking);
    assert!(
        lacking.contains("1 machines of class CUSTOM_GOLD"),
        "{lacking}"
    );
    assert!(
        lacking.contains("0 of these have all 2 traits"),
        "{lacking}"
    );
    // The owner sees the leased one, but may not have it.
    let candidate = CreateNodeAllocation {
        candidates: [id(1)].into(),
        ..wanted(62, Some(OWNER), "gold")
    };
    let candidate = error(&mut world, candidate);
    assert!(candidate.contains("no candidate is free"), "{candidate}");
    let held = world.hold(CreateNodeAllocation {
        traits: traits(&["CUSTOM_B"]),
        ..wanted(63, Some(OWNER), "gold")
    });
    assert_eq!(held.machine, Some(id(2)));
    let taken = error(&mut world, wanted(64, Some(OWNER), "gold"));
    assert!(taken.contains("1 machines of class CUSTOM_GOLD"), "{taken}");
    assert!(taken.contains("0 of them are free"), "{taken}");
}

#[test]
fn a_dead_machine_is_not_held() {
    let mut world = owned();
    world.ok(capable(1, "gold", &[]));
    world.tick(6 * 60_000);
    let held = world.hold(wanted(60, Some(OWNER), "gold"));
    assert!(held.last_error.contains("sign of life"), "{held:?}");
}

#[test]
fn requests_that_are_refused() {
    type Change = fn(&mut CreateNodeAllocation);
    let cases: &[(Change, ErrorCode)] = &[
        (|op| op.owner = Some(id(9)), ErrorCode::NotFound),
        (|op| op.resource_class = None, ErrorCode::InvalidField),
        (|op| op.name = Some(String::new()), ErrorCode::InvalidField),
        (|op| op.name = Some("a b".into()), ErrorCode::InvalidField),
        (
            |op| op.name = Some("x".repeat(256)),
            ErrorCode::InvalidField,
        ),
        (
            |op| op.name = Some("00000000-0000-4000-8000-000000000001".into()),
            ErrorCode::InvalidField,
        ),
        // Foreign and absent machines alike.
        (|op| op.candidates = [id(2)].into(), ErrorCode::NotFound),
        (|op| op.candidates = [id(9)].into(), ErrorCode::NotFound),
        (
            |op| {
                op.traits = (0..=TRAITS_MAX)
                    .map(|n| format!("CUSTOM_{n}").parse().unwrap())
                    .collect()
            },
            ErrorCode::InvalidField,
        ),
        (
            |op| {
                op.extra = (0..=EXTRA_MAX)
                    .map(|n| (n.to_string(), String::new()))
                    .collect()
            },
            ErrorCode::InvalidField,
        ),
        (
            |op| {
                op.extra = (0..5)
                    .map(|n| (n.to_string(), "x".repeat(EXTRA_BYTES_MAX / 4)))
                    .collect()
            },
            ErrorCode::InvalidField,
        ),
        (
            |op| op.backfill = Some(id(1)),
            ErrorCode::MachineNotAllocated,
        ),
        (|op| op.backfill = Some(id(2)), ErrorCode::NotFound),
    ];
    let mut world = owned();
    world.waiting(2);
    world.ok(owner(2, Some(STRANGER)));
    world.ok(capable(1, "gold", &[]));
    for (at, (change, code)) in cases.iter().enumerate() {
        let mut op = wanted(60, Some(OWNER), "gold");
        change(&mut op);
        assert_eq!(world.refused(op), *code, "case {at}");
    }
}

#[test]
fn foreign_and_absent_candidates_look_the_same() {
    let mut world = owned();
    let asked = |machine: u128| CreateNodeAllocation {
        candidates: [id(machine)].into(),
        ..wanted(60, Some(STRANGER), "gold")
    };
    let (foreign, absent) = (world.error(asked(1)), world.error(asked(9)));
    let plain = |error: &StateError, machine: u128| {
        let machine: proto_types::MachineId = id(machine);
        error.message.replace(&machine.to_string(), "")
    };
    assert_eq!(plain(&foreign, 1), plain(&absent, 9));
    assert_eq!(foreign.hint, absent.hint);
}

#[test]
fn names_are_unique_among_those_of_an_owner() {
    let mut world = owned();
    let named = |number, owner, name: &str| CreateNodeAllocation {
        name: Some(name.into()),
        ..wanted(number, owner, "none")
    };
    world.ok(named(60, Some(OWNER), "web"));
    let taken = world.refused(named(61, Some(OWNER), "web"));
    assert_eq!(taken, ErrorCode::AlreadyExists);
    // Others learn nothing of the name.
    world.ok(named(62, Some(STRANGER), "web"));
    world.ok(named(63, None, "web"));
    assert_eq!(
        world.refused(named(64, None, "web")),
        ErrorCode::AlreadyExists
    );
    let rename = |number: u128, project: Option<u128>, name: &str| UpdateNodeAllocation {
        id: id(number),
        project: project.map(id),
        lock: Lock::Server,
        name: Some(name.into()),
        extra: None,
    };
    world.ok(named(65, Some(OWNER), "db"));
    let taken = world.refused(rename(65, Some(OWNER), "web"));
    assert_eq!(taken, ErrorCode::AlreadyExists);
    let foreign = world.refused(rename(65, Some(STRANGER), "web"));
    assert_eq!(foreign, ErrorCode::NotFound);
    // An administrator's is no project's: no project equals none.
    assert_eq!(
        world.refused(rename(63, Some(OWNER), "x")),
        ErrorCode::NotFound
    );
    world.ok(rename(60, Some(OWNER), ""));
    world.ok(rename(65, Some(OWNER), "web"));
    let pool = MachinePool::Of(id(OWNER));
    let found = query::named_allocation(&world.tables, pool, "web").unwrap();
    assert_eq!(found.id, id(65));
    assert!(query::named_allocation(&world.tables, pool, "db").is_none());
}

#[test]
fn a_node_allocation_lasts_until_the_machine_is_freed() {
    let mut world = leased();
    world.ok(capable(1, "gold", &[]));
    world.ok(wanted(60, Some(LESSEE), "gold"));
    // It is on offer to nobody, and installed by its owner alone.
    let (partition, size) = (text(PARTITION), text(SIZE));
    let offered = query::allocatable_machines(&world.tables, &partition, &size);
    assert_eq!(offered.count(), 0);
    world.use_machine(1);
    let delete = |project: Option<u128>| DeleteNodeAllocation {
        id: id(60),
        project: project.map(id),
    };
    assert_eq!(world.refused(delete(Some(LESSEE))), ErrorCode::StillInUse);
    assert_eq!(world.refused(delete(None)), ErrorCode::StillInUse);
    assert_eq!(world.refused(delete(Some(OWNER))), ErrorCode::NotFound);
    world.free(1);
    assert_eq!(world.refused(delete(Some(LESSEE))), ErrorCode::NotFound);
    assert_eq!(world.machine(1).tenure.reserved_by, None);
}

#[test]
fn a_machine_that_is_held_changes_no_hands() {
    let mut world = owned();
    world.ok(capable(1, "gold", &[]));
    world.ok(wanted(60, Some(OWNER), "gold"));
    let lease = grant(&world);
    assert_eq!(world.refused(lease.clone()), ErrorCode::MachineReserved);
    assert_eq!(world.refused(owner(1, None)), ErrorCode::MachineReserved);
    let machine = DeleteMachine { id: id(1) };
    assert_eq!(world.refused(machine), ErrorCode::MachineReserved);
    world.ok(DeleteNodeAllocation {
        id: id(60),
        project: Some(id(OWNER)),
    });
    world.ok(lease);
    world.ok(end(by(LESSEE)));
}

#[test]
fn a_machine_in_use_gets_its_node_allocation_afterwards() {
    let mut world = leased();
    let backfill = |number, owner| CreateNodeAllocation {
        resource_class: None,
        backfill: Some(id(1)),
        ..wanted(number, owner, "gold")
    };
    world.ok(named(1));
    let classless = world.refused(backfill(60, Some(LESSEE)));
    assert_eq!(classless, ErrorCode::MachineNotReady);
    world.ok(capable(1, "gold", &["CUSTOM_A"]));
    let owner = world.refused(backfill(60, Some(OWNER)));
    assert_eq!(owner, ErrorCode::MachineAllocated);
    let stranger = world.refused(backfill(60, Some(STRANGER)));
    assert_eq!(stranger, ErrorCode::NotFound);
    let other_class = CreateNodeAllocation {
        resource_class: Some("silver".parse().unwrap()),
        ..backfill(60, Some(LESSEE))
    };
    assert_eq!(world.refused(other_class), ErrorCode::MachineNotReady);
    let more_traits = CreateNodeAllocation {
        traits: ["CUSTOM_B".parse().unwrap()].into(),
        ..backfill(60, Some(LESSEE))
    };
    assert_eq!(world.refused(more_traits), ErrorCode::MachineNotReady);
    let held = world.hold(backfill(60, Some(LESSEE)));
    assert_eq!(held.machine, Some(id(1)));
    assert_eq!(held.resource_class.as_str(), "gold");
    let second = world.refused(backfill(61, Some(LESSEE)));
    assert_eq!(second, ErrorCode::MachineReserved);
}

#[test]
fn replicas_choose_the_same_machine_for_every_seed() {
    let mut world = with_machine();
    world.waiting(2);
    for machine in [1, 2] {
        world.ok(capable(machine, "gold", &["CUSTOM_A"]));
    }
    for seed in [0, 1, 7, u64::MAX / 2, u64::MAX] {
        let op = CreateNodeAllocation {
            seed,
            traits: ["CUSTOM_A".parse().unwrap()].into(),
            ..wanted(60, None, "gold")
        };
        let command = Command::new(world.now, "tester", op);
        let [first, second] = [(); 2].map(|()| {
            let mut tables = world.tables.clone();
            let outcome = apply(&mut tables, &command);
            (outcome, tables.state_hash().unwrap())
        });
        assert_eq!(first, second, "{seed}");
        let held = first.0.result.unwrap().node_allocation().unwrap();
        assert!(held.machine.is_some(), "{seed}");
    }
}

#[test]
fn a_project_holds_so_many_at_once() {
    let mut world = World::new();
    let one = wanted(1, Some(OWNER), "gold");
    let held = world.hold(one);
    // As if they had been made one by one.
    for number in 2..=NODE_ALLOCATIONS_MAX {
        let other = NodeAllocation {
            id: id(number as u128),
            ..held.clone()
        };
        let record = Record::NodeAllocation(other.into());
        let bytes = record.encode().unwrap();
        world.tables.load(record.kind(), &bytes, 1).unwrap();
    }
    let more = wanted(1_000_000, Some(OWNER), "gold");
    assert_eq!(world.refused(more), ErrorCode::TooMany);
    let delete = DeleteNodeAllocation {
        id: id(1),
        project: Some(id(OWNER)),
    };
    world.ok(delete);
    world.ok(wanted(1_000_000, Some(OWNER), "gold"));
}
