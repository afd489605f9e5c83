//! BMCs that no agent reaches: their machines are on offer to nobody until an agent reads them again.

use control_state::*;
use proto_types::Timestamp;

use crate::restored::restored;
use crate::world::*;

const HOUR_MS: u64 = 3_600_000;

/// The agent of machine 1's BMC tells how a reading went.
pub(crate) fn read(world: &mut World, error: Option<&str>) {
    let reading = BmcReading {
        machine: Some(id(1)),
        address: "10.0.0.1:623".into(),
        power_state: "on".into(),
        error: error.map(str::to_owned),
        observed_at: world.now,
        ..BmcReading::default()
    };
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings: vec![reading],
    });
}

/// Time passes under a leader that began to listen at a time; hammer is heard all along.
pub(crate) fn pass(world: &mut World, by_ms: u64, listening_since: Timestamp) {
    world.later(by_ms);
    world.ok(Tick {
        listening_since,
        heard: [(id(1), world.now)].into(),
        ..Tick::default()
    });
}

/// A machine on offer whose BMC was read.
fn offered() -> World {
    let mut world = upgraded();
    world.waiting(1);
    read(&mut world, None);
    world
}

fn obstacle(world: &World) -> Option<String> {
    query::machine_obstacle(&world.tables, id(1))
}

fn by_id(allocation: u128) -> AllocateMachine {
    AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(allocation)
    }
}

#[test]
fn a_machine_whose_bmc_nobody_reaches_is_on_offer_to_nobody() {
    for (what, error, bound_ms) in [
        ("nothing is told of it", None, BMC_SILENT_AFTER_MS),
        ("it is not read", Some("timeout"), BMC_FAILED_AFTER_MS),
    ] {
        let mut world = offered();
        if error.is_some() {
            read(&mut world, error);
        }
        pass(&mut world, bound_ms - 1, Timestamp::ZERO);
        assert_eq!(obstacle(&world), None, "{what}");
        pass(&mut world, 1, Timestamp::ZERO);
        let why = obstacle(&world);
        assert_eq!(why.as_deref(), Some("no agent reaches its BMC"), "{what}");
        assert!(world.apply(allocation_of(7)).result.is_err(), "{what}");
        assert_eq!(world.refused(by_id(7)), ErrorCode::MachineNotReady);
        let wanted = crate::node_allocations::capable(1, "gold", &[]);
        world.ok(wanted);
        let wanted = crate::node_allocations::wanted(60, None, "gold");
        let held = world.ok(wanted).node_allocation().unwrap();
        assert_eq!(held.machine, None, "{what}: {held:?}");
        // Another attempt that fails is no sign of it, one that succeeds is.
        read(&mut world, Some("refused"));
        assert!(obstacle(&world).is_some(), "{what}");
        read(&mut world, None);
        assert_eq!(obstacle(&world), None, "{what}");
        assert_eq!(world.machine(1).bmc.as_ref().unwrap().failing_since, None);
        world.ok(by_id(7));
    }
}

#[test]
fn attempts_count_from_the_first_that_failed() {
    let mut world = offered();
    let began = world.now;
    for _ in 0..5 {
        read(&mut world, Some("timeout"));
        let failing_since = world.machine(1).bmc.as_ref().unwrap().failing_since;
        assert_eq!(failing_since, Some(began));
        assert_eq!(obstacle(&world), None);
        pass(&mut world, BMC_FAILED_AFTER_MS / 5, Timestamp::ZERO);
    }
    assert!(obstacle(&world).is_some());
    // In between it was read once.
    let mut world = offered();
    for _ in 0..5 {
        read(&mut world, Some("timeout"));
        pass(&mut world, BMC_FAILED_AFTER_MS / 2, Timestamp::ZERO);
        read(&mut world, None);
        pass(&mut world, BMC_FAILED_AFTER_MS / 2, Timestamp::ZERO);
        assert_eq!(obstacle(&world), None);
    }
}

/// A new leader, also after the whole control was away, has heard no agent yet.
#[test]
fn a_young_leader_judges_no_bmc_by_the_time_before_it() {
    for error in [None, Some("timeout")] {
        let mut world = offered();
        read(&mut world, error);
        world.later(HOUR_MS);
        let began = world.now;
        let bound_ms = match error {
            None => BMC_SILENT_AFTER_MS,
            Some(_) => BMC_FAILED_AFTER_MS,
        };
        for (by_ms, is_offered) in [(0, true), (bound_ms - 1, true), (1, false)] {
            pass(&mut world, by_ms, began);
            assert_eq!(obstacle(&world).is_none(), is_offered, "{error:?}");
        }
        // What was found before stays, and is not found anew.
        let next = world.now;
        pass(&mut world, 0, next);
        assert!(obstacle(&world).is_some());
        read(&mut world, None);
        assert_eq!(obstacle(&world), None);
    }
}

#[test]
fn a_restored_state_judges_no_bmc_by_the_time_before_its_reconciliation() {
    let mut world = restored(&offered());
    for _ in 0..3 {
        pass(&mut world, HOUR_MS / 2, Timestamp::ZERO);
    }
    world.ok(ReconcileRestore { judge_silent: true });
    for (by_ms, is_reached) in [(0, true), (BMC_SILENT_AFTER_MS - 1, true), (1, false)] {
        pass(&mut world, by_ms, Timestamp::ZERO);
        let bmc = world.machine(1).bmc.as_ref().unwrap();
        assert_eq!(!bmc.unreached, is_reached);
    }
}

#[test]
fn nobody_judges_a_bmc_that_was_never_read_or_before_every_node_knows_the_rule() {
    let mut unread = upgraded();
    unread.waiting(1);
    let mut earlier = World::new();
    earlier.waiting(1);
    read(&mut earlier, Some("timeout"));
    for world in [&mut unread, &mut earlier] {
        for _ in 0..3 {
            pass(world, HOUR_MS / 2, Timestamp::ZERO);
            assert_eq!(obstacle(world), None);
        }
    }
    let bmc = earlier.machine(1).bmc.as_ref().unwrap();
    assert_eq!((bmc.failing_since, bmc.unreached), (None, false));
}

#[test]
fn a_reading_of_an_unreached_bmc_is_always_news() {
    let mut world = offered();
    read(&mut world, Some("timeout"));
    pass(&mut world, BMC_FAILED_AFTER_MS, Timestamp::ZERO);
    let machine = world.machine(1).clone();
    assert!(machine.bmc.as_ref().unwrap().unreached);
    let reading = BmcReading {
        machine: Some(id(1)),
        address: "10.0.0.1:623".into(),
        power_state: "on".into(),
        observed_at: world.now,
        ..BmcReading::default()
    };
    assert!(life::bmc_reading_matters(
        &world.tables,
        &reading,
        world.now
    ));
}
