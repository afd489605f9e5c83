//! How long commands take in a large installation. Numbers are for people: run it with
//! `cargo test --release -p control-state --test state scale -- --ignored --nocapture`.

use std::time::Instant;

use control_state::*;

use crate::world::*;

const MACHINES: u128 = 100_000;

#[test]
#[ignore = "takes a while and proves nothing by itself"]
fn a_hundred_thousand_machines() {
    let mut world = World::new();
    let unbounded = (
        label::UNKNOWN_MACHINES.to_owned(),
        UNKNOWN_MACHINES_MAX.to_string(),
    );
    world.ok(relabel(LabelsUpdate::Replace([unbounded].into())));
    for number in 0..MACHINES {
        let mut machine = registration(1, "boot-1");
        machine.id = id(number);
        machine.hardware.nics[0].neighbours[0].port_id = format!("swp{number}");
        let seen_at = world.now;
        let partition = text(PARTITION);
        world.ok(MachineSeen {
            id: id(number),
            partition,
            mac: None,
            seen_at,
            to_disk: false,
            stated_at: None,
            relayed: None,
        });
        world.ok(machine);
        world.wipe(number);
        world.event(number, EventKind::Registering);
        world.event(number, EventKind::Waiting);
    }
    // Without a managed switch no cables are needed.
    world.ok(DeleteSwitch {
        id: text("leaf1"),
        force: true,
    });
    let time = |world: &mut World, what: &str, op: Op| {
        let began = Instant::now();
        world.ok(op);
        println!("{what}: {:?}", began.elapsed());
    };
    for allocation in 1..=3 {
        time(&mut world, "allocate", allocation_of(allocation).into());
    }
    time(&mut world, "tick", Tick::default().into());
    let first = query::project_machines(&world.tables, id(1))
        .next()
        .unwrap()
        .id;
    time(
        &mut world,
        "free",
        FreeMachine {
            id: first,
            project: Some(id(1)),
        }
        .into(),
    );
    let began = Instant::now();
    let copy = world.tables.clone();
    println!("clone: {:?}", began.elapsed());
    let began = Instant::now();
    let hash = copy.state_hash().unwrap();
    println!("hash: {:?} {hash:?}", began.elapsed());
}

const NODES: u128 = 5_000;

/// As many machines on offer to node allocations, of one class and owner.
fn with_nodes() -> World {
    let mut world = World::new();
    world.waiting(1);
    world.ok(SetMachineOwner {
        machine: id(1),
        owner: Some(id(1)),
    });
    world.ok(SetMachineCapability {
        machine: id(1),
        project: None,
        resource_class: ClassChange::Set("baremetal".parse().unwrap()),
        traits: Some(TraitsChange::Replace(
            (0..20)
                .map(|n| format!("CUSTOM_{n}").parse().unwrap())
                .collect(),
        )),
    });
    // Without a managed switch no cables are needed.
    world.ok(DeleteSwitch {
        id: text("leaf1"),
        force: true,
    });
    let (mut machine, log) = (world.machine(1).clone(), world.log(1).clone());
    machine.hardware.nics.clear();
    let mut tables = world.tables;
    for number in 1..NODES {
        let machine = Machine {
            id: id((number << 96) | number),
            ..machine.clone()
        };
        let log = EventLog {
            machine: machine.id,
            ..log.clone()
        };
        for record in [
            Record::Machine(machine.into()),
            Record::EventLog(log.into()),
        ] {
            let bytes = record.encode().unwrap();
            tables.load(record.kind(), &bytes, 1).unwrap();
        }
    }
    World::of(tables, world.now)
}

#[test]
#[ignore = "takes a while and proves nothing by itself"]
fn node_allocations_among_five_thousand() {
    let world = with_nodes();
    let mut tables = world.tables.clone();
    let mut measure = |what: &str, count: u128, op: &dyn Fn(u128) -> Op| {
        let commands: Vec<Command> = (0..count)
            .map(|number| Command::new(world.now, "tester", op(number)))
            .collect();
        let mut taken = Vec::new();
        let mut held = 0;
        for command in &commands {
            let began = Instant::now();
            let outcome = apply(&mut tables, command);
            taken.push(began.elapsed());
            let made = outcome.result.unwrap().node_allocation().unwrap();
            held += usize::from(made.machine.is_some());
        }
        taken.sort();
        let (half, most) = (taken[taken.len() / 2], taken[taken.len() - 1]);
        println!("{what}: {held} of {count} held, median {half:?}, largest {most:?}");
    };
    let wanted = |number: u128| CreateNodeAllocation {
        seed: (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ..crate::node_allocations::wanted(10_000 + number, Some(1), "baremetal")
    };
    measure("by class", 1_000, &|number| wanted(number).into());
    measure("by class and three traits", 1_000, &|number| {
        let traits = (3..6)
            .map(|n| format!("CUSTOM_{n}").parse().unwrap())
            .collect();
        let op = wanted(number + 1_000);
        CreateNodeAllocation { traits, ..op }.into()
    });
    measure("a trait that no machine has", 100, &|number| {
        let traits = ["CUSTOM_X".parse().unwrap()].into();
        let op = wanted(number + 2_000);
        CreateNodeAllocation { traits, ..op }.into()
    });
    measure("until none is free", 3_100, &|number| {
        wanted(number + 3_000).into()
    });
}
