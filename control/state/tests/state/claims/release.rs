//! The end of a claim: wiped to the pool's floor and verified, or in quarantine; and its reuse.

use control_state::*;

use super::site::*;
use crate::world::*;

const MINUTE_MS: u64 = 60_000;

/// A running claim in a pool with this floor.
fn running(floor: WipeLevel, spec: ClaimSpec) -> World {
    let mut world = World::hosting(&[&[]]);
    world.ok(SetPool {
        floor,
        ..pool(POOL)
    });
    // The first wipe was weaker than the floor may be: the host is wiped again before it is used.
    if floor == WipeLevel::Sanitize {
        world.ok(CleanHost { machine: id(1) });
        world.bmc(BmcAction::BootPxe, None);
        world.bmc(BmcAction::PowerCycle, None);
        world.boot(1, "boot-2");
        world.ok(WipeDone {
            id: id(1),
            disks: vec![DiskWipe {
                method: "nvme-format".into(),
                ..wiped("/dev/vda", None)
            }],
        });
        world.event(1, EventKind::Waiting);
    }
    world.ok(claim(1, 1, spec));
    world.installed_claim(1);
    world
}

/// The floor of the pool, the method of the wipe, and what becomes of the host.
#[test]
fn nobody_gets_a_host_before_it_is_wiped_to_the_floor() {
    for (floor, method, is_offered) in [
        (WipeLevel::Erase, "zero", true),
        (WipeLevel::Erase, "nvme-format", true),
        (WipeLevel::Sanitize, "nvme-format", true),
        (WipeLevel::Sanitize, "ata-secure-erase", true),
        (WipeLevel::Sanitize, "zero", false),
        (WipeLevel::Sanitize, "discard", false),
    ] {
        let mut world = running(floor, installing(&[]));
        world.ok(claim(2, 2, ClaimSpec::default()));
        world.ok(deletion(1, 1));
        assert_eq!(world.state(1), ClaimState::Releasing, "{method}");
        world.left(1);
        assert_eq!(world.host_of(2), None, "it is not wiped");
        world.ok(WipeDone {
            id: id(1),
            disks: vec![DiskWipe {
                method: method.into(),
                ..wiped("/dev/vda", None)
            }],
        });
        assert_eq!(world.state(1), ClaimState::Gone, "{method}");
        world.event(1, EventKind::Waiting);
        assert_eq!(
            world.host_of(2).is_some(),
            is_offered,
            "{floor:?} by {method}"
        );
        assert_eq!(world.pool_host(1).quarantine.is_none(), is_offered);
    }
}

#[test]
fn a_disk_that_cannot_be_wiped_puts_the_host_into_quarantine() {
    let mut world = running(WipeLevel::Erase, installing(&[]));
    world.ok(deletion(1, 1));
    world.left(1);
    world.ok(WipeDone {
        id: id(1),
        disks: vec![wiped("/dev/vda", Some("broken"))],
    });
    assert_eq!(
        world.state(1),
        ClaimState::Gone,
        "the project is done with it"
    );
    assert!(world.pool_host(1).quarantine.is_some());
    // Made available and wiped, it is in quarantine until an administrator says otherwise.
    world.ok(SetMachineState {
        id: id(1),
        state: Availability::Available,
        description: String::new(),
    });
    world.boot(1, "boot-3");
    world.wipe(1);
    world.event(1, EventKind::Waiting);
    world.ok(claim(2, 1, ClaimSpec::default()));
    assert_eq!(world.reason(2), (PendingReason::Cordoned, 1));
    world.ok(CleanHost { machine: id(1) });
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerCycle, None);
    world.boot(1, "boot-4");
    world.wipe(1);
    world.event(1, EventKind::Waiting);
    assert_eq!(world.host_of(2), Some(1));
}

#[test]
fn a_floor_that_is_raised_counts_for_free_hosts_at_once() {
    let mut world = World::hosting(&[&[]]);
    world.ok(SetPool {
        floor: WipeLevel::Sanitize,
        ..pool(POOL)
    });
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.host_of(1), None);
    world.tick(2_000);
    assert!(
        world.pool_host(1).quarantine.is_some(),
        "it was wiped by less"
    );
}

#[test]
fn a_host_that_was_never_installed_is_free_at_once() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, ClaimSpec::default()));
    world.ok(claim(2, 2, ClaimSpec::default()));
    world.ok(deletion(1, 1));
    assert_eq!(world.state(1), ClaimState::Gone);
    assert_eq!(world.host_of(2), Some(1));
    assert_eq!(world.pool_host(1).epoch, 2);
}

#[test]
fn a_deleted_claim_is_released_whatever_it_was_doing() {
    // While it installs.
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.ok(deletion(1, 1));
    world.reclaimed(1, "zero");
    assert_eq!(world.state(1), ClaimState::Gone);
    // While it is paused: a deletion is the last word.
    world.ok(claim(2, 1, installing(&[])));
    world.ok(intent(
        2,
        ClaimSpec {
            paused: true,
            ..installing(&[])
        },
    ));
    world.ok(deletion(2, 1));
    world.reclaimed(1, "zero");
    assert_eq!(world.state(2), ClaimState::Gone);
    // While it is being wiped.
    world.ok(claim(3, 1, installing(&[])));
    world.ok(intent(3, asking(&[])));
    assert_eq!(world.state(3), ClaimState::Deprovisioning);
    world.ok(deletion(3, 1));
    assert_eq!(world.state(3), ClaimState::Releasing);
    world.reclaimed(1, "zero");
    assert_eq!(world.state(3), ClaimState::Gone);
}

#[test]
fn a_locked_machine_is_freed_once_it_is_unlocked() {
    let mut world = running(WipeLevel::Erase, installing(&[]));
    let lock = |state, description: &str| SetMachineState {
        id: id(1),
        state,
        description: description.into(),
    };
    world.ok(lock(Availability::Locked, "police"));
    world.ok(deletion(1, 1));
    assert_eq!(world.state(1), ClaimState::Releasing);
    assert_eq!(world.phase(1), Phase::Running);
    world.ok(lock(Availability::Available, ""));
    world.tick(2 * MINUTE_MS);
    assert_eq!(world.phase(1), Phase::ReclaimPowerOff);
    world.reclaimed(1, "zero");
    assert_eq!(world.state(1), ClaimState::Gone);
}

fn reusing(key: &str, required: bool) -> ClaimSpec {
    ClaimSpec {
        reuse: Some(ReuseWish {
            key: key.into(),
            required,
            keep_ms: 30 * MINUTE_MS,
            wipe: None,
        }),
        ..installing(&[])
    }
}

#[test]
fn a_host_is_kept_for_the_next_claim_of_its_project_and_key() {
    let mut world = running(WipeLevel::Erase, reusing("workers", false));
    world.waiting(2);
    world.ok(host(2, &[]));
    world.ok(deletion(1, 1));
    // The next claim waits for its host although another one is free.
    world.ok(claim(2, 1, reusing("workers", false)));
    assert_eq!(world.reason(2), (PendingReason::WaitingForReuse, 0));
    // Neither another project nor another key gets it, even though they ask first.
    world.ok(claim(3, 2, asking(&[])));
    assert_eq!(world.host_of(3), Some(2));
    world.ok(claim(4, 1, reusing("others", true)));
    assert_eq!(world.reason(4), (PendingReason::NoMatch, 0));
    world.ok(claim(5, 2, asking(&["a=b"])));
    world.ok(UpdateClaim {
        project: id(2),
        ..intent(5, asking(&[]))
    });
    world.reclaimed(1, "zero");
    assert_eq!(world.host_of(2), Some(1));
    assert_eq!(world.state(2), ClaimState::Provisioning);
    assert_eq!(world.host_of(5), None);
}

#[test]
fn a_reservation_is_a_pair_and_ends_with_its_time_its_project_or_its_policy() {
    let mut world = running(WipeLevel::Erase, reusing("workers", false));
    world.ok(deletion(1, 1));
    world.reclaimed(1, "zero");
    world.ok(claim(3, 2, asking(&[])));
    assert_eq!(world.reason(3), (PendingReason::AllBusy, 1));
    let mut by_time = world.clone();
    by_time.tick(29 * MINUTE_MS);
    assert_eq!(by_time.host_of(3), None);
    by_time.boot(1, "boot-9");
    by_time.event(1, EventKind::Waiting);
    by_time.tick(2 * MINUTE_MS);
    assert_eq!(by_time.host_of(3), Some(1), "its time is over");
    let mut by_policy = world.clone();
    by_policy.ok(SetPool {
        policies: vec![only(2)],
        ..pool(POOL)
    });
    by_policy.tick(2_000);
    assert_eq!(
        by_policy.host_of(3),
        Some(1),
        "the pool does not admit it any more"
    );
    // The pool limits how long a host is kept.
    let mut short = running(WipeLevel::Erase, reusing("workers", false));
    short.ok(SetPool {
        reuse_max_ms: 0,
        ..pool(POOL)
    });
    short.ok(deletion(1, 1));
    assert_eq!(short.pool_host(1).reserved, None);
}

#[test]
fn a_required_host_that_is_not_there_is_waited_for() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, reusing("workers", true)));
    assert_eq!(world.reason(1), (PendingReason::NoMatch, 0));
    world.ok(claim(2, 1, reusing("workers", false)));
    assert_eq!(world.host_of(2), Some(1), "another one will do");
}

#[test]
fn a_project_reserves_no_more_hosts_than_its_quotas_let_it_have() {
    let bounded = |machines: Option<u32>, small: Option<u32>| Limits {
        machines,
        machines_of_size: small.map(|limit| (text(SIZE), limit)).into_iter().collect(),
        ..Limits::default()
    };
    for (subject, limits) in [
        (QuotaSubject::Project(id(1)), bounded(Some(2), None)),
        (QuotaSubject::Project(id(1)), bounded(None, Some(2))),
        (QuotaSubject::Tenant(text("acme")), bounded(Some(2), None)),
    ] {
        let mut world = World::hosting(&[&[], &[], &[]]);
        world.ok(SetQuota { subject, limits });
        for number in 1..=3 {
            let spec = ClaimSpec {
                image: None,
                networks: vec![],
                ..reusing(&format!("key-{number}"), false)
            };
            world.ok(claim(number, 1, spec));
            assert!(world.host_of(number).is_some(), "{number}");
            world.ok(deletion(number, 1));
        }
        let is_reserved = |number: &u128| world.pool_host(*number).reserved.is_some();
        assert_eq!((1..=3).filter(is_reserved).count(), 2);
        // The third one is there for others.
        world.ok(claim(4, 2, asking(&[])));
        assert!(world.host_of(4).is_some());
    }
}
