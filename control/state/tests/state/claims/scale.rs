//! How long claims take among many hosts. Numbers are for people: run it with
//! `cargo test --release -p control-state --test state claims::scale -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use control_state::*;

use super::site::*;
use crate::world::*;

const HOSTS: u128 = 100_000;
const WAITING: u128 = 1_000;
/// Number of the id of the first of many projects.
const PROJECTS: u128 = 0x10_0000;

/// Applies a command without the checks of the world, which look at every machine.
fn put(world: &mut World, op: impl Into<Op>) {
    let command = Command::new(world.now, "tester", op);
    apply(&mut world.tables, &command).result.unwrap();
}

/// The pool with so many hosts of four kinds, without switches.
fn large() -> World {
    let mut world = World::pooled();
    let unbounded = (
        label::UNKNOWN_MACHINES.to_owned(),
        UNKNOWN_MACHINES_MAX.to_string(),
    );
    world.ok(relabel(LabelsUpdate::Replace([unbounded].into())));
    world.ok(SetSettings {
        audit: None,
        budgets: Some(Budgets {
            projects_per_tenant: 2_000,
            ..Budgets::default()
        }),
    });
    world.ok(DeleteSwitch {
        id: text("leaf1"),
        force: true,
    });
    for number in 0..HOSTS {
        let mut machine = registration(1, "boot-1");
        machine.id = id(number);
        machine.hardware.nics.clear();
        let seen_at = world.now;
        let seen = MachineSeen {
            id: id(number),
            partition: text(PARTITION),
            mac: None,
            seen_at,
            to_disk: false,
            stated_at: None,
            relayed: None,
        };
        put(&mut world, seen);
        put(&mut world, machine);
        let disks = vec![wiped("/dev/vda", None)];
        put(
            &mut world,
            WipeDone {
                id: id(number),
                disks,
            },
        );
        let waits = MachineEvent {
            id: id(number),
            kind: EventKind::Waiting,
            message: String::new(),
            time: seen_at,
        };
        put(&mut world, waits);
        put(
            &mut world,
            host(number, &[&format!("kind={}", number % 4), "disk=ssd"]),
        );
    }
    world
}

#[expect(clippy::print_stdout, reason = "numbers are for people")]
fn time(world: &mut World, what: &str, op: impl Into<Op>) -> Duration {
    let command = Command::new(world.now, "tester", op);
    let began = Instant::now();
    let outcome = apply(&mut world.tables, &command);
    let took = began.elapsed();
    outcome.result.unwrap();
    println!("{what}: {took:?}");
    took
}

#[test]
#[ignore = "takes a while and proves nothing by itself"]
fn a_hundred_thousand_hosts() {
    let mut world = large();
    for number in 1..=3 {
        time(&mut world, "a claim", claim(number, 1, asking(&["kind=1"])));
        time(
            &mut world,
            "a claim with an image",
            claim(10 + number, 1, installing(&["kind=2"])),
        );
        time(
            &mut world,
            "a claim of any host",
            claim(20 + number, 1, asking(&[])),
        );
    }
    let tick = Command::new(world.now, "tester", Op::from(Tick::default()));
    let began = Instant::now();
    let _due = tick_may_change(&world.tables, &Tick::default(), tick.now);
    println!("is a tick due: {:?}", began.elapsed());
    // One host of a kind that a thousand projects wait for.
    put(&mut world, host(0, &["kind=rare"]));
    put(&mut world, claim(30, 2, asking(&["kind=rare"])));
    for number in 0..WAITING {
        put(&mut world, project(PROJECTS + number, "acme"));
        let waits = claim(PROJECTS + number, PROJECTS + number, asking(&["kind=rare"]));
        put(&mut world, waits);
    }
    time(
        &mut world,
        "a release that a thousand claims wait for",
        deletion(30, 2),
    );
    let first = world.host_of(PROJECTS);
    assert_eq!(first, Some(0));
}
