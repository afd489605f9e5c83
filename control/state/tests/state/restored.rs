//! A restored state is not judged until an operator has reconciled it.

use control_state::*;
use proto_types::Timestamp;

use crate::world::*;

const HOUR_MS: u64 = 3_600_000;

/// The world as a restore makes it out of a backup of this moment.
fn restored(world: &World) -> World {
    let mut tables = world.tables.clone();
    let clock = tables.get::<ClusterClock>(&ClusterClock::ONE.to_owned());
    let clock = ClusterClock {
        restored: Some(Restored {
            made_at: world.now,
            revision: tables.revision(),
        }),
        ..clock.map_or_else(|| ClusterClock::at(world.now), |it| ClusterClock::clone(it))
    };
    let revision = tables.revision();
    let record = Record::ClusterClock(std::sync::Arc::new(clock));
    let bytes = record.encode().unwrap();
    tables.load(record.kind(), &bytes, revision).unwrap();
    World::of(tables, world.now)
}

fn reconcile(judge_silent: bool) -> ReconcileRestore {
    ReconcileRestore { judge_silent }
}

/// Machine 1 waits, 2 is a tenant's, 3 is being wiped, 4 is on its way back from a tenant.
fn data_centre() -> World {
    let mut world = World::new();
    world.ok(Tick::default());
    world.waiting(1);
    world.running(2, 2);
    world.boot(3, "boot-1");
    world.running(4, 4);
    world.free(4);
    world
}

fn phases(world: &World) -> Vec<(Phase, Liveliness)> {
    let phase = |number| (world.phase(number), world.log(number).liveliness);
    [1, 2, 3, 4].into_iter().map(phase).collect()
}

#[test]
fn nothing_is_judged_before_it_is_reconciled() {
    let before = data_centre();
    let mut world = restored(&before);
    assert_eq!(before.open_orders(), [BmcAction::PowerOff]);
    assert_eq!(world.open_orders(), [], "ordered before the backup");
    assert_eq!(before.order(3), life::MachineOrder::Wipe);
    let held = |order| matches!(order, life::MachineOrder::Hold { .. });
    assert!(held(world.order(3)));
    let known = phases(&world);
    for _ in 0..100 {
        world.tick(HOUR_MS / 2);
        assert_eq!(phases(&world), known);
        assert_eq!(world.open_orders(), []);
    }
    let free = query::machine_obstacle(&world.tables, id(1)).unwrap();
    assert!(free.contains("restored"), "{free}");
    // The same without a restore.
    let mut judged = before;
    for _ in 0..4 {
        judged.tick(HOUR_MS / 2);
    }
    assert_ne!(phases(&judged), known);
}

#[test]
fn what_was_heard_is_told_from_what_was_not() {
    let mut world = restored(&data_centre());
    let made_at = life::restored(&world.tables).unwrap().made_at;
    world.later(10_000);
    let heard = [(id(2), world.now)].into();
    world.ok(Tick {
        heard,
        ..Tick::default()
    });
    world.event(3, EventKind::Alive);
    let compared: Vec<(bool, bool)> = life::restored_machines(&world.tables, made_at)
        .map(|it| (it.is_observed, it.may_be_taken()))
        .collect();
    // A machine that comes back from a tenant is the tenant's no more.
    assert_eq!(
        compared,
        [(false, true), (true, false), (true, false), (false, false)]
    );
}

#[test]
fn an_operator_lets_it_be_judged() {
    for judge_silent in [false, true] {
        let mut world = restored(&data_centre());
        world.tick(50 * HOUR_MS);
        let op = Op::from(reconcile(judge_silent));
        assert_eq!(op.level(), CONTRACT_LEVEL);
        let clock = world.ok(op).cluster_clock().unwrap();
        assert_eq!(
            (clock.restored.as_ref(), clock.reconciled_at),
            (None, Some(world.now))
        );
        assert_eq!(world.refused(reconcile(false)), ErrorCode::NotRestored);
        let state = world.machine(1).condition.state;
        let locked = match judge_silent {
            true => Availability::Available,
            false => Availability::Locked,
        };
        assert_eq!(state, locked);
        assert_eq!(world.order(3), life::MachineOrder::Wipe);
        assert_eq!(world.open_orders(), [BmcAction::PowerOff], "goes on");
        // Silence counts from now on, not from the backup.
        world.tick(1_000);
        assert_eq!(world.log(1).liveliness, Liveliness::Alive);
        for _ in 0..3 {
            world.tick(HOUR_MS / 2);
        }
        assert_eq!(world.log(1).liveliness, Liveliness::Dead);
        let rebooted = world.machine(1).step_attempts > 0;
        assert_eq!(rebooted, judge_silent, "a locked machine is left alone");
    }
}

#[test]
fn only_a_restored_state_is_reconciled() {
    let mut world = World::new();
    world.ok(Tick::default());
    assert_eq!(world.refused(reconcile(false)), ErrorCode::NotRestored);
    // Neither ticks nor an accepted time end the hold.
    let mut world = restored(&world);
    world.later(30 * HOUR_MS);
    world.ok(Tick::default());
    world.ok(AcceptTime { time: world.now });
    world.ok(Tick::default());
    assert!(life::restored(&world.tables).is_some());
    assert!(life::restored(&Tables::new()).is_none());
    assert_ne!(world.now, Timestamp::ZERO);
}
