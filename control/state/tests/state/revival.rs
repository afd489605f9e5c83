//! Machines that fall silent while nobody has them.

use control_state::*;

use crate::world::*;

const HALF_AN_HOUR_MS: u64 = 30 * 60_000;
const REVIVAL: [BmcAction; 2] = [BmcAction::BootPxe, BmcAction::PowerCycle];

/// Nothing is heard of the machine.
fn silent_hour(world: &mut World) {
    // A clock that jumps by an hour judges nothing.
    for _ in 0..2 {
        world.tick(HALF_AN_HOUR_MS);
    }
}

/// The BMC does what it was ordered.
fn revived(world: &mut World) {
    assert_eq!(world.open_orders(), REVIVAL);
    for action in REVIVAL {
        world.bmc(action, None);
    }
    let reason = &world.machine(1).reason;
    assert!(reason.contains("silent"), "{reason}");
}

#[test]
fn a_waiting_machine_that_came_back_is_revived_anew_and_has_no_stale_reason() {
    let mut world = World::new();
    world.waiting(1);
    for round in 0..2 * STEP_ATTEMPTS_MAX {
        silent_hour(&mut world);
        revived(&mut world);
        world.boot(1, &format!("boot-of-round-{round}"));
        world.event(1, EventKind::Waiting);
        let machine = world.machine(1);
        assert_eq!(
            (machine.phase, machine.reason.as_str()),
            (Phase::Waiting, "")
        );
        assert_eq!(query::machine_obstacle(&world.tables, id(1)), None);
    }
    // It was only cut off: it is heard again without a boot.
    silent_hour(&mut world);
    for action in REVIVAL {
        world.bmc(action, Some("no answer"));
    }
    world.event(1, EventKind::Alive);
    assert_eq!(world.machine(1).reason, "");
    // Or the leader heard it, and says so with the next tick.
    silent_hour(&mut world);
    revived(&mut world);
    let now = world.now;
    world.ok(Tick {
        heard: [(id(1), now)].into(),
        ..Tick::default()
    });
    assert_eq!(world.machine(1).reason, "");
    // One that stays silent is given up.
    for _ in 0..STEP_ATTEMPTS_MAX {
        silent_hour(&mut world);
        revived(&mut world);
    }
    silent_hour(&mut world);
    assert!(world.open_orders().is_empty());
    let reason = &world.machine(1).reason;
    assert!(reason.contains("did not come up"), "{reason}");
    world.boot(1, "boot-at-last");
    assert_eq!(world.machine(1).reason, "");
}

#[test]
fn the_reason_follows_the_size() {
    let mut world = World::new();
    world.waiting(1);
    let size = Size::clone(world.tables.get::<Size>(&text(SIZE)).unwrap());
    let with = |max| UpdateSize {
        id: text(SIZE),
        lock: Lock::Server,
        name: None,
        description: None,
        constraints: Some(
            size.constraints
                .iter()
                .cloned()
                .map(|mut one| {
                    if one.kind == SizeConstraintType::Cores {
                        one.max = max;
                    }
                    one
                })
                .collect(),
        ),
        labels: None,
    };
    world.ok(with(1));
    let reason = &world.machine(1).reason;
    assert!(reason.contains("no size"), "{reason}");
    world.ok(with(4));
    assert_eq!(world.machine(1).reason, "");
}
