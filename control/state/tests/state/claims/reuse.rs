//! Hosts that are kept for their project by less than a full wipe, and the full wipe that comes before
//! anybody else gets them.

use control_state::life::MachineOrder;
use control_state::*;

use super::site::*;
use crate::world::*;

/// A change by its name.
type Step<'a> = (&'a str, &'a dyn Fn(&mut World));

const MINUTE_MS: u64 = 60_000;

/// An intent of project 2 whose host is kept for a minute, and the wipe that is enough for the next claim.
fn keeping(wipe: Option<WipeLevel>) -> ClaimSpec {
    let mut spec = installing(&[]);
    spec.networks[0].network = text("other");
    spec.reuse = Some(ReuseWish {
        key: "workers".into(),
        required: false,
        keep_ms: MINUTE_MS,
        wipe,
    });
    spec
}

/// The pool with these limits of wipes.
fn limits(floor: WipeLevel, reuse_floor: Option<WipeLevel>) -> SetPool {
    SetPool {
        floor,
        reuse_floor,
        ..pool(POOL)
    }
}

/// The host of an installed claim of project 2 that was deleted, before its wipe.
fn released(limits: SetPool, spec: ClaimSpec) -> World {
    let mut world = World::hosting(&[&[]]);
    world.ok(child("other", 2));
    world.ok(claim(1, 2, spec));
    world.installed_claim(1);
    world.ok(limits);
    world.ok(deletion(1, 2));
    world.left(1);
    assert_eq!(world.phase(1), Phase::Wiping);
    world
}

fn reports(world: &mut World, method: &str) {
    world.ok(WipeDone {
        id: id(1),
        disks: vec![DiskWipe {
            method: method.into(),
            ..wiped("/dev/vda", None)
        }],
    });
}

/// A host that is kept for project 2 with its data, while project 1 waits for one.
fn kept() -> World {
    let metadata = Some(WipeLevel::Metadata);
    let mut world = released(limits(WipeLevel::Erase, metadata), keeping(metadata));
    reports(&mut world, "metadata");
    world.event(1, EventKind::Waiting);
    assert_eq!(world.state(1), ClaimState::Gone);
    world.ok(claim(3, 1, asking(&[])));
    assert_eq!(world.host_of(3), None);
    assert_eq!(world.pool_host(1).light_wipe, metadata);
    world
}

/// The machine comes up again as it was told, and is wiped in full.
fn wiped_again(world: &mut World) {
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerCycle, None);
    world.boot(1, "boot-again");
    assert_eq!(world.order(1), MachineOrder::Wipe);
    reports(world, "zero");
    world.event(1, EventKind::Waiting);
}

/// The limits of the pool, the wish of the claim, and the order that follows.
#[test]
fn less_is_wiped_by_the_wish_of_the_claim_down_to_the_limit_of_the_pool() {
    use MachineOrder::{Wipe, WipeMetadata};
    use WipeLevel::{Erase, Metadata, Sanitize};
    for (floor, reuse_floor, wish, order) in [
        (Erase, Some(Metadata), Some(Metadata), WipeMetadata),
        (Sanitize, Some(Metadata), Some(Metadata), WipeMetadata),
        (Erase, Some(Metadata), Some(Erase), Wipe),
        (Erase, Some(Metadata), None, Wipe),
        (Erase, Some(Erase), Some(Metadata), Wipe),
        (Erase, None, Some(Metadata), Wipe),
        (Sanitize, Some(Erase), Some(Metadata), Wipe),
    ] {
        let mut world = released(limits(floor, reuse_floor), keeping(wish));
        assert_eq!(world.order(1), order, "{floor:?} {reuse_floor:?} {wish:?}");
        // As strong as the wish is not less: with the least that is enough the host is clean.
        let is_light = order == WipeMetadata;
        reports(
            &mut world,
            if is_light { "metadata" } else { "nvme-format" },
        );
        assert_eq!(world.state(1), ClaimState::Gone);
        let host = world.pool_host(1);
        assert!(host.is_clean(), "{host:?}");
        assert_eq!(host.light_wipe, is_light.then_some(Metadata));
    }
    // Without a key there is nobody to keep the data for.
    let without = ClaimSpec {
        reuse: None,
        ..keeping(None)
    };
    let world = released(limits(Erase, Some(Metadata)), without);
    assert_eq!(world.order(1), Wipe);
}

#[test]
fn a_weaker_method_is_enough_for_the_project_and_not_for_others() {
    use WipeLevel::{Erase, Metadata, Sanitize};
    let mut world = released(limits(Sanitize, Some(Erase)), keeping(Some(Metadata)));
    reports(&mut world, "zero");
    world.event(1, EventKind::Waiting);
    assert_eq!(world.pool_host(1).light_wipe, Some(Erase));
    world.tick(MINUTE_MS + 1_000);
    // The full wipe is tried before the host goes into quarantine.
    assert_eq!(world.pool_host(1).quarantine, None);
    assert!(world.machine(1).dirty);
    wiped_again(&mut world);
    assert!(world.pool_host(1).quarantine.is_some());
}

#[test]
fn the_next_claim_of_the_project_gets_the_data_and_the_one_after_it_only_if_it_wants_it() {
    let mut world = kept();
    world.ok(claim(2, 2, keeping(None)));
    assert_eq!(world.host_of(2), Some(1));
    assert_eq!(world.state(2), ClaimState::Provisioning);
    world.installed_claim(2);
    assert_eq!(world.pool_host(1).light_wipe, None, "it is dirty");
    world.ok(deletion(2, 2));
    world.left(1);
    assert_eq!(world.order(1), MachineOrder::Wipe);
    reports(&mut world, "zero");
    world.event(1, EventKind::Waiting);
    assert_eq!(world.pool_host(1).light_wipe, None);
    assert_eq!(world.host_of(3), None, "it is kept all the same");
    world.tick(MINUTE_MS + 1_000);
    assert_eq!(world.host_of(3), Some(1));
}

/// A claim that never installs gives a host with data back: it is wiped before it is offered.
#[test]
fn a_claim_without_an_image_gives_no_data_away() {
    let mut world = kept();
    let bound = |wipe| ClaimSpec {
        image: None,
        networks: vec![],
        ..keeping(wipe)
    };
    world.ok(claim(2, 2, bound(Some(WipeLevel::Metadata))));
    assert_eq!(world.state(2), ClaimState::Bound);
    world.event(1, EventKind::Waiting);
    assert_eq!(world.state(2), ClaimState::Bound, "it is as it was kept");
    let mut again = world.clone();
    again.ok(deletion(2, 2));
    assert_eq!(again.state(2), ClaimState::Gone);
    assert_eq!(again.host_of(3), None, "kept with its data once more");
    world.ok(UpdateClaim {
        project: id(2),
        ..intent(2, bound(None))
    });
    world.ok(deletion(2, 2));
    assert_eq!(world.state(2), ClaimState::Releasing);
    assert_eq!(world.host_of(3), None);
    wiped_again(&mut world);
    assert_eq!(world.state(2), ClaimState::Gone);
    assert_eq!(world.host_of(3), None, "it is kept, without data");
    world.tick(MINUTE_MS + 1_000);
    assert_eq!(world.host_of(3), Some(1));
}

#[test]
fn with_the_reservation_ends_what_was_enough_for_the_project() {
    let metadata = Some(WipeLevel::Metadata);
    let by_time = |world: &mut World| world.tick(MINUTE_MS + 1_000);
    let by_policy = |world: &mut World| {
        world.ok(SetPool {
            policies: vec![only(1)],
            ..limits(WipeLevel::Erase, metadata)
        });
        world.tick(2_000);
    };
    let by_project = |world: &mut World| {
        world.ok(DeleteNetwork {
            id: text("other"),
            project: None,
        });
        world.ok(DeleteProject { id: id(2) });
    };
    let ends: [Step<'_>; 3] = [
        ("time", &by_time),
        ("policy", &by_policy),
        ("project", &by_project),
    ];
    for (what, end) in ends {
        let mut world = kept();
        end(&mut world);
        let host = world.pool_host(1);
        assert_eq!(
            (host.reserved.as_ref(), host.light_wipe),
            (None, None),
            "{what}"
        );
        assert!(!host.is_clean(), "{what}");
        assert!(world.machine(1).dirty, "{what}");
        assert_eq!(world.host_of(3), None, "{what}");
        wiped_again(&mut world);
        assert_eq!(world.host_of(3), Some(1), "{what}");
    }
}

/// The administrator asks for more while the host is kept: it stays kept, without data.
#[test]
fn a_limit_that_is_raised_and_a_clean_host_leave_no_data() {
    let by_limit = |world: &mut World| {
        world.ok(limits(WipeLevel::Erase, None));
    };
    let by_hand = |world: &mut World| {
        world.ok(CleanHost { machine: id(1) });
    };
    let by_pool = |world: &mut World| {
        world.ok(pool("other"));
        world.ok(SetPoolHost {
            pool: text("other"),
            ..host(1, &[])
        });
    };
    let asks: [Step<'_>; 3] = [
        ("limit", &by_limit),
        ("hand", &by_hand),
        ("another pool", &by_pool),
    ];
    for (what, ask) in asks {
        let mut world = kept();
        ask(&mut world);
        assert!(world.machine(1).dirty, "{what}");
        wiped_again(&mut world);
        let host = world.pool_host(1);
        assert!(
            host.is_clean() && host.reserved.is_some(),
            "{what}: {host:?}"
        );
        assert_eq!(host.light_wipe, None, "{what}");
    }
}

#[test]
fn a_host_that_leaves_its_pool_is_wiped_in_full() {
    let mut world = kept();
    world.ok(RemovePoolHost {
        machine: id(1),
        force: false,
    });
    assert!(world.machine(1).dirty);
    wiped_again(&mut world);
    assert!(!world.machine(1).dirty);

    // Also while it is being wiped: the report of less is not taken.
    let metadata = Some(WipeLevel::Metadata);
    let mut world = released(limits(WipeLevel::Erase, metadata), keeping(metadata));
    world.ok(RemovePoolHost {
        machine: id(1),
        force: true,
    });
    assert_eq!(world.order(1), MachineOrder::Wipe);
    reports(&mut world, "metadata");
    assert_eq!(world.phase(1), Phase::Wiping);
    assert!(world.machine(1).dirty);
    reports(&mut world, "zero");
    assert_eq!(world.phase(1), Phase::Waiting);
}

/// The disk of another host may hold the data of another project.
#[test]
fn a_disk_that_the_claim_did_not_have_is_wiped_in_full() {
    let metadata = Some(WipeLevel::Metadata);
    for serial in ["of another host", ""] {
        let mut world = released(limits(WipeLevel::Erase, metadata), keeping(metadata));
        let mut registration = registration(1, "boot-swapped");
        registration.hardware.disks[0].serial = serial.into();
        world.ok(registration);
        assert_eq!(world.order(1), MachineOrder::Wipe, "{serial}");
        reports(&mut world, "metadata");
        assert_eq!(world.phase(1), Phase::Wiping, "{serial}");
    }
}

#[test]
fn a_locked_host_is_wiped_once_it_is_unlocked() {
    let mut world = kept();
    let lock = |state, description: &str| SetMachineState {
        id: id(1),
        state,
        description: description.into(),
    };
    world.ok(lock(Availability::Locked, "police"));
    world.tick(MINUTE_MS + 1_000);
    assert!(world.machine(1).dirty);
    assert_eq!(life::bmc_desired(&world.tables, &text(PARTITION)), vec![]);
    world.ok(lock(Availability::Available, ""));
    assert_eq!(world.host_of(3), None);
    world.boot(1, "boot-unlocked");
    assert_eq!(world.order(1), MachineOrder::Wipe);
    reports(&mut world, "zero");
    world.event(1, EventKind::Waiting);
    assert_eq!(world.host_of(3), Some(1));
}

#[test]
fn claims_that_differ_in_their_wipe_wait_in_one_line() {
    let mut world = World::pooled();
    world.ok(child("other", 2));
    world.ok(claim(1, 2, keeping(None)));
    world.ok(claim(2, 2, keeping(Some(WipeLevel::Metadata))));
    assert_eq!(world.reason(2), (PendingReason::BehindEarlierClaim, 0));
}

#[test]
fn limits_that_contradict_themselves_are_refused() {
    let mut world = World::pooled();
    for (floor, reuse_floor) in [
        (WipeLevel::Metadata, None),
        (WipeLevel::Erase, Some(WipeLevel::Sanitize)),
    ] {
        let refused = world.refused(limits(floor, reuse_floor));
        assert_eq!(
            refused,
            ErrorCode::InvalidField,
            "{floor:?} {reuse_floor:?}"
        );
    }
    world.ok(limits(WipeLevel::Sanitize, Some(WipeLevel::Sanitize)));
}
