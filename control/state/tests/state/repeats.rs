//! Reports that are told again because the answer was lost, also by senders whose clocks are wrong.

use control_state::*;

use crate::world::*;

/// Hammer reports a failure again when the answer was lost.
#[test]
fn one_failure_that_is_told_twice_is_one_attempt() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    let failed = InstallDone {
        error: Some("no route to the image".into()),
        step: "image".into(),
        retryable: true,
        log_tail: "12:00 no route".into(),
        ..installed(1, 1)
    };
    let attempt = |world: &World| {
        let allocation = world.machine(1).allocation.as_ref().unwrap();
        allocation.install.attempt
    };
    world.event(1, EventKind::Installing);
    for _ in 0..3 {
        world.ok(failed.clone());
        assert_eq!(attempt(&world), 2);
    }
    world.later(1_000);
    world.event(1, EventKind::Installing);
    world.ok(failed);
    assert_eq!(attempt(&world), 3);
}

/// The sender's clock may be far off, and something else may have happened since.
#[test]
fn a_wrong_clock_does_not_make_one_event_two() {
    const DAY_MS: u64 = 24 * 3_600_000;
    for clock in [ms(5), ms(1_000_000_000 + DAY_MS)] {
        let mut world = World::new();
        world.boot(1, "boot-1");
        let told = |kind| MachineEvent {
            id: id(1),
            kind,
            message: String::new(),
            time: clock,
        };
        world.wipe(1);
        world.ok(told(EventKind::Waiting));
        world.later(1_000);
        world.event(1, EventKind::PlannedReboot);
        world.ok(told(EventKind::Preparing));
        let once = world.log(1).clone();
        world.later(1_000);
        world.ok(told(EventKind::Preparing));
        assert_eq!(*world.log(1), once, "the answer was lost");
        world.ok(told(EventKind::Registering));
        world.ok(told(EventKind::Preparing));
        world.ok(told(EventKind::Registering));
        assert!(!world.log(1).crash_loop, "{:?}", world.log(1));
    }
}

#[test]
fn a_boot_that_is_told_again_is_no_crash() {
    let mut world = World::new();
    let told = MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at: world.now,
        to_disk: false,
        stated_at: Some(ms(77)),
        relayed: None,
    };
    world.ok(told.clone());
    world.later(1_000);
    world.event(1, EventKind::Preparing);
    let once = world.log(1).clone();
    world.later(1_000);
    // Its clock is ahead: what it tells again looks like a boot of now.
    world.ok(MachineSeen {
        seen_at: world.now,
        ..told.clone()
    });
    assert_eq!(*world.log(1), once);
    world.ok(MachineSeen {
        seen_at: world.now,
        stated_at: Some(ms(78)),
        ..told
    });
    assert!(world.log(1).crash_loop, "another boot");
}
