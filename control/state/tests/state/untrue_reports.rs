//! Reports of switches and machines that say what is not so, or no longer.

use crate::cables::{ISOLATED, PROVISIONING, claiming, links, obstacle, vni};
use crate::world::*;
use control_state::*;

#[test]
fn a_leaf_that_lies_moves_no_machine() {
    let mut world = World::new();
    world.ok(leaf("leaf2", "rack-1"));
    world.running(1, 1);
    world.waiting(2);
    let tenants = world.port(1);
    // It says that it hears others' cards, to get what belongs to them.
    world.hear("leaf2", "swp4", &[mac(1)]);
    world.hear("leaf2", "swp5", &[mac(2)]);
    assert_eq!(world.port(1), tenants);
    assert_eq!(vni(&world, "leaf2", "swp4"), ISOLATED);
    assert_eq!(vni(&world, "leaf2", "swp5"), PROVISIONING);
    assert_eq!(links(&world, 2), ["leaf1 swp2"]);
    assert_eq!(obstacle(&world, 2), "");
    let told = query::cable_issues(&world.tables, world.machine(2));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("leaf2 says that it hears"), "{told:?}");
    // Or that somebody else is where the tenant's machine is.
    world.hear("leaf1", "swp1", &[mac(2)]);
    world.ok(claiming(2, &[("leaf1", "swp1")]));
    assert_eq!(
        (world.port(1), links(&world, 1)),
        (tenants, vec!["leaf1 swp1".into(), "leaf2 swp4".into()])
    );
    let told = query::cable_issues(&world.tables, world.machine(1));
    assert!(
        told.iter().any(|line| line.contains("where leaf1 hears")),
        "{told:?}"
    );
}

#[test]
fn an_installed_machine_tells_no_inventory() {
    let mut world = World::new();
    world.running(1, 1);
    let before = world.machine(1).clone();
    world.hear("leaf1", "swp5", &[mac(1)]);
    let mut other = RegisterMachine {
        boot_id: "boot-9".into(),
        bmc_address: "10.0.0.9".into(),
        hammer_version: "9".into(),
        ..claiming(1, &[("leaf1", "swp5")])
    };
    other.hardware.disks.clear();
    world.ok(other.clone());
    assert_eq!(world.open_orders(), [BmcAction::BootDisk]);
    let told = |machine: &Machine| {
        let hammer = machine.hammer_version.clone();
        (
            machine.hardware.clone(),
            hammer,
            machine.bmc.clone(),
            machine.phase,
        )
    };
    assert_eq!(told(world.machine(1)), told(&before));
    assert_eq!(
        vni(&world, "leaf1", "swp5"),
        ISOLATED,
        "it may be there now"
    );
    world.free(1);
    world.ok(other.clone());
    world.bmc(BmcAction::PowerOff, None);
    world.ok(other);
    assert_eq!(world.machine(1).hardware, before.hardware);
    assert_eq!(links(&world, 1)[0], "leaf1 swp1");
}

#[test]
fn a_report_that_was_overtaken_says_nothing() {
    let mut world = World::new();
    world.waiting(1);
    world.switch_obeys();
    let before = world.tables.get::<Switch>(&text("leaf1")).unwrap().clone();
    let stale = |term, generation| ReportSwitch {
        applied_term: term,
        applied_generation: generation,
        error: Some("it failed long ago".into()),
        duration_ms: 99,
        ..world
            .hearing("leaf1", "swp1", vec![Neighbour::default()])
            .unwrap()
    };
    let sync = &before.sync;
    let all = [
        stale(u64::MAX, sync.applied_generation - 1),
        stale(sync.applied_term, sync.applied_generation - 1),
    ];
    for old in all {
        assert!(!life::switch_report_matters(&world.tables, &old));
        world.later(1000);
        assert_eq!(world.apply(old).changes, vec![]);
        let now = world.tables.get::<Switch>(&text("leaf1")).unwrap();
        assert_eq!(*now, before);
    }
}

#[test]
fn a_report_of_a_generation_to_come_blinds_nobody() {
    let mut world = World::new();
    world.waiting(1);
    world.switch_obeys();
    let heard = |world: &World, applied_generation, error: &str| ReportSwitch {
        applied_term: u64::MAX,
        applied_generation,
        error: Some(error.into()),
        ..world.hearing("leaf1", "swp1", vec![]).unwrap()
    };
    let told = world.tables.revision();
    for generation in [told + 1, u64::MAX] {
        let lie = heard(&world, generation, "lie");
        assert_eq!(world.refused(lie), ErrorCode::InvalidField);
    }
    // A term is no reason to believe less of what comes later.
    let last = heard(&world, told, "now");
    world.ok(last);
    let true_one = ReportSwitch {
        applied_term: 1,
        applied_generation: world.tables.revision(),
        error: None,
        ..heard(&world, 0, "")
    };
    world.ok(true_one);
    let switch = world.tables.get::<Switch>(&text("leaf1")).unwrap();
    assert_eq!((switch.sync.applied_term, &switch.sync.error), (1, &None));
}
