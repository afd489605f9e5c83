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
