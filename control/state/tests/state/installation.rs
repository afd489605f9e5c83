//! Installations: tried again, held, and told twice.

use crate::life::{PROVISIONING, target};
use crate::world::*;
use control_state::life::{BootTarget, MachineOrder};
use control_state::*;

#[test]
fn a_power_cut_during_the_installation_is_another_attempt() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    for attempt in 1..=INSTALL_ATTEMPTS_MAX {
        let MachineOrder::Install(order) = world.order(1) else {
            panic!("{:?}", world.order(1))
        };
        assert_eq!(order.attempt, attempt);
        world.event(1, EventKind::Installing);
        world.ok(registration(1, &world.machine(1).boot_id.clone()));
        assert!(matches!(world.order(1), MachineOrder::Install(o) if o.attempt == attempt));
        world.boot(1, &format!("again-{attempt}"));
    }
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Install));
    assert!(
        world.machine(1).reason.contains("restarted"),
        "{}",
        world.machine(1).reason
    );
    assert!(matches!(world.order(1), MachineOrder::Hold { .. }));
    assert!(world.log(1).last_error_event.is_some());
    assert_eq!(target(&world), BootTarget::Hammer);

    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert_eq!(world.machine(1).allocation, None);
}

#[test]
fn a_failed_installation_is_tried_again_or_held() {
    // errors as (retryable) → attempts that follow, phase
    let cases: &[(&[bool], Phase, u32)] = &[
        (&[true], Phase::Installing, 2),
        (&[true, true], Phase::Installing, 3),
        (&[true, true, true], Phase::Held(HoldCause::Install), 3),
        (&[false], Phase::Held(HoldCause::Install), 1),
        (&[true, false], Phase::Held(HoldCause::Install), 2),
    ];
    for (errors, phase, attempt) in cases {
        let mut world = World::new();
        world.waiting(1);
        world.allocate(1);
        for retryable in *errors {
            world.later(1_000);
            world.event(1, EventKind::Installing);
            world.ok(InstallDone {
                error: Some("digest is wrong".into()),
                step: "image".into(),
                retryable: *retryable,
                ..installed(1, 1)
            });
        }
        let machine = world.machine(1);
        assert_eq!(machine.phase, *phase, "{errors:?}");
        let install = &machine.allocation.as_ref().unwrap().install;
        assert_eq!(install.attempt, *attempt, "{errors:?}");
        assert!(
            machine.reason.contains("image: digest is wrong"),
            "{}",
            machine.reason
        );
        assert_eq!(world.port(1), PROVISIONING);
    }
}

#[test]
fn done_twice_or_for_another_allocation() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    assert_eq!(
        world.refused(installed(1, 9)),
        ErrorCode::MachineNotAllocated
    );
    world.ok(installed(1, 1));
    let orders = world.open_orders();
    world.ok(installed(1, 1));
    assert_eq!(world.open_orders(), orders, "no second order");
}

#[test]
fn a_reboot_does_not_wait_for_a_silent_bmc() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    world.ok(installed(1, 1));
    world.tick(29_000);
    assert_eq!(world.order(1), MachineOrder::Nothing);
    world.tick(1_000);
    assert_eq!(world.order(1), MachineOrder::Reboot);
    assert!(!world.machine(1).reason.is_empty());
    world.tick(60_000);
    assert_eq!(
        world.port(1),
        PROVISIONING,
        "hammer did not say that it left"
    );
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::Running);
    assert_ne!(world.port(1), PROVISIONING);
}

#[test]
fn pxe_before_disk_is_no_crash() {
    let mut world = World::new();
    world.running(1, 1);
    let seen_at = world.now;
    world.ok(MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: None,
    });
    assert!(!world.log(1).crash_loop);
    assert_eq!(world.log(1).state, Some(EventKind::PhonedHome));
}
