//! Machines that nobody announced.

use control_state::*;
use proto_types::MacAddr;

use crate::world::*;

const HOUR_MS: u64 = 3_600_000;

fn seen(world: &World, number: u128, mac: Option<MacAddr>) -> MachineSeen {
    MachineSeen {
        id: id(number),
        partition: text(PARTITION),
        mac,
        seen_at: world.now,
        to_disk: false,
        stated_at: None,
        relayed: None,
    }
}

fn random_mac(number: u128) -> MacAddr {
    let [.., a, b, c] = number.to_be_bytes();
    MacAddr([2, 0, 0, a, b, c])
}

fn machines(world: &World) -> usize {
    world.tables.all::<Machine>().count()
}

#[test]
fn three_mac_addresses_do_not_make_149_machines() {
    let mut world = World::new();
    for number in 0..149 {
        let op = seen(&world, 1000 + number, Some(mac(number % 3)));
        let _refused = world.apply(op);
    }
    assert_eq!(machines(&world), 3 * MAC_MACHINES_MAX);
    let op = seen(&world, 5000, Some(mac(1)));
    assert_eq!(world.refused(op), ErrorCode::TooManyUnknown);
    // The machines of the rack have room.
    for number in 10..50 {
        world.boot(number, "boot-1");
    }
    let found = strangers(&world.tables);
    let [found] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((found.machines, found.is_full), (9, false));
    assert_eq!(found.macs, [mac(0), mac(1), mac(2)]);
}

#[test]
fn one_segment_makes_so_many_machines_in_a_minute_and_in_all() {
    let mut world = World::new();
    let mut number = 0;
    let mut flood = |world: &mut World| {
        for _ in 0..200 {
            number += 1;
            let op = seen(world, 10_000 + number, Some(random_mac(number)));
            let _refused = world.apply(op);
        }
        machines(world)
    };
    assert_eq!(flood(&mut world), 120);
    let op = seen(&world, 1, None);
    assert_eq!(
        world.refused(op),
        ErrorCode::TooManyUnknown,
        "without a MAC too"
    );
    for minute in 1..10 {
        world.later(60_000);
        assert_eq!(flood(&mut world), (120 * (minute + 1)).min(480));
    }
    assert!(strangers(&world.tables)[0].is_full);
    // A BMC agent's machines need no room: an operator plugged them in.
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings: (0..50).map(|number| reading(number, number)).collect(),
    });
    assert_eq!(machines(&world), 530);
    world.boot(7, "boot-1");
    assert_eq!(world.phase(7), Phase::Wiping);

    // Who never registers is forgotten; who did, or has a BMC, stays.
    world.tick(HOUR_MS);
    assert_eq!(machines(&world), 50);
    assert_eq!(strangers(&world.tables), []);
    assert_eq!(world.tables.all::<EventLog>().count(), 1);
    assert_eq!(flood(&mut world), 170);
}

#[test]
fn registering_is_no_way_around() {
    let mut world = World::new();
    for number in 0..20 {
        let mut op = registration(1, "boot-1");
        op.id = id(100 + number);
        op.seen_in = Some(text(PARTITION));
        let _refused = world.apply(op);
    }
    assert_eq!(machines(&world), MAC_MACHINES_MAX, "one card");
    for number in 0..200u128 {
        let mut op = registration(1, "boot-1");
        op.id = id(1000 + number);
        op.seen_in = Some(text(PARTITION));
        op.hardware.nics[0].mac = random_mac(number);
        let _refused = world.apply(op);
    }
    assert_eq!(machines(&world), 120);
}

fn reading(number: u128, bmc: u128) -> BmcReading {
    BmcReading {
        machine: Some(id(number)),
        address: format!("10.0.0.{bmc}:623"),
        power_state: "on".into(),
        ..BmcReading::default()
    }
}

#[test]
fn one_bmc_stands_for_few_machines() {
    let mut world = World::new();
    for number in 0..20 {
        world.ok(ReportBmc {
            partition: text(PARTITION),
            readings: vec![reading(number, 1), reading(100 + number, 2)],
        });
    }
    assert_eq!(machines(&world), 6);
    assert_eq!(strangers(&world.tables), []);
}

#[test]
fn a_bmc_agent_invents_so_many_machines() {
    let mut world = World::new();
    let report = |world: &mut World, from: u128| {
        let at = |number: u128| BmcReading {
            address: format!("10.{}.{}.1:623", number / 256, number % 256),
            ..reading(number, 0)
        };
        world.ok(ReportBmc {
            partition: text(PARTITION),
            readings: (from..from + 100).map(at).collect(),
        });
        machines(world)
    };
    let max = BMC_ONLY_MAX as u128;
    for from in (0..max).step_by(100) {
        report(&mut world, from + 1);
    }
    assert_eq!(machines(&world), BMC_ONLY_MAX);
    assert_eq!(report(&mut world, max + 1), BMC_ONLY_MAX);
    // One that boots and one that is deleted each make room for another.
    world.boot(7, "boot-1");
    world.ok(DeleteMachine { id: id(8) });
    assert_eq!(report(&mut world, 2 * max), BMC_ONLY_MAX + 1);
}

#[test]
fn the_bound_is_the_partitions() {
    let mut world = World::new();
    let set = |number: &str| {
        let label = (label::UNKNOWN_MACHINES.to_owned(), number.to_owned());
        relabel(LabelsUpdate::Replace([label].into()))
    };
    assert_eq!(world.refused(set("0")), ErrorCode::InvalidField);
    let mistyped = ("metalmesh.dev/unknown-machines".to_owned(), "1".to_owned());
    let mistyped = relabel(LabelsUpdate::Replace([mistyped].into()));
    assert_eq!(world.refused(mistyped), ErrorCode::InvalidField);
    world.ok(set("1"));
    let op = seen(&world, 1, Some(mac(1)));
    world.ok(op);
    let op = seen(&world, 2, Some(mac(2)));
    assert_eq!(world.refused(op.clone()), ErrorCode::TooManyUnknown);
    let again = seen(&world, 1, Some(mac(1)));
    world.ok(again);
    world.later(60_000);
    world.ok(op);
}
