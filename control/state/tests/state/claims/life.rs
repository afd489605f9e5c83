//! The states of a claim with a real machine behind it.

use control_state::*;

use super::site::*;
use crate::world::*;

#[test]
fn a_claim_is_bound_first_and_installed_once_it_has_an_image() {
    let mut world = World::hosting(&[&["kind=medium"]]);
    world.ok(claim(1, 1, asking(&["kind=medium"])));
    assert_eq!(world.state(1), ClaimState::Bound);
    assert_eq!(world.claim(1).binding.as_ref().unwrap().epoch, 1);
    assert_eq!(world.phase(1), Phase::Waiting);

    world.ok(intent(1, installing(&["kind=medium"])));
    assert_eq!(world.state(1), ClaimState::Provisioning);
    let machine = world.machine(1);
    let allocation = machine.allocation.as_ref().unwrap();
    assert_eq!(allocation.project, id(1));
    assert_eq!(allocation.name, "claim-1");
    let grant = ClaimGrant {
        claim: claim_id(1),
        epoch: 1,
    };
    assert_eq!(allocation.claim, Some(grant));

    world.installed_claim(1);
    assert_eq!(world.state(1), ClaimState::Active);
    assert!(world.condition(1, ClaimConditionKind::Ready).status);

    // The image is taken away: the host is wiped, and stays.
    world.ok(intent(1, asking(&["kind=medium"])));
    assert_eq!(world.state(1), ClaimState::Deprovisioning);
    world.reclaimed(1, "zero");
    assert_eq!(world.state(1), ClaimState::Bound);
    assert_eq!(world.host_of(1), Some(1));
    assert!(!world.machine(1).dirty);

    // Another image, in the same epoch.
    world.ok(intent(1, installing(&["kind=medium"])));
    world.installed_claim(1);
    assert_eq!(world.state(1), ClaimState::Active);
    assert_eq!(world.pool_host(1).provisions, 2);
}

/// The name of a claim is its client's key; host name and name of the allocation follow it if they
/// can.
#[test]
fn a_claim_with_any_name_can_be_installed() {
    let long = "n".repeat(253);
    let id_text = claim_id(1).to_string();
    for (name, allocation, hostname) in [
        ("web-1", "web-1", "web-1"),
        ("cluster/space/web-1", "cluster/space/web-1", "metal"),
        (long.as_str(), id_text.as_str(), "metal"),
        ("w", id_text.as_str(), "w"),
    ] {
        let mut world = World::hosting(&[&[]]);
        world.ok(CreateClaim {
            name: name.into(),
            ..claim(1, 1, installing(&[]))
        });
        assert_eq!(world.state(1), ClaimState::Provisioning, "{name}");
        let machine = world.machine(1);
        let made = machine.allocation.as_ref().unwrap();
        assert_eq!(
            (made.name.as_str(), made.hostname.as_str()),
            (allocation, hostname)
        );
    }
}

#[test]
fn what_is_installed_does_not_change() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    let other = |change: fn(&mut ClaimSpec)| {
        let mut spec = installing(&[]);
        change(&mut spec);
        intent(1, spec)
    };
    for change in [
        other(|spec| spec.image = Some(text(IMAGE))),
        other(|spec| spec.hostname = Some("other".into())),
        other(|spec| spec.userdata = "b3RoZXI=".into()),
        other(|spec| spec.ssh_public_keys = vec!["ssh-ed25519 AAAA you".into()]),
    ] {
        assert_eq!(world.refused(change), ErrorCode::ClaimInstalled);
    }
    // The selector may: it only says that the host does not fit any more.
    world.ok(intent(1, installing(&["kind=large"])));
    assert_eq!(world.state(1), ClaimState::Active);
    assert!(world.condition(1, ClaimConditionKind::SelectorDrift).status);
}

#[test]
fn an_installation_that_fails_is_a_condition_and_keeps_nobody_from_deleting() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    let allocation = world.machine(1).allocation.clone().unwrap();
    world.event(1, EventKind::Installing);
    world.ok(InstallDone {
        allocation: allocation.id,
        error: Some("the image is broken".into()),
        ..installed(1, 0)
    });
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Install));
    assert_eq!(world.state(1), ClaimState::Provisioning);
    let provisioned = world.condition(1, ClaimConditionKind::Provisioned);
    assert_eq!(provisioned.reason, "InstallFailed");
    world.ok(deletion(1, 1));
    assert_eq!(world.state(1), ClaimState::Releasing);
    world.reclaimed(1, "zero");
    assert_eq!(world.state(1), ClaimState::Gone);
}

#[test]
fn an_allocation_that_is_refused_leaves_the_claim_bound_and_is_tried_again() {
    let mut world = World::hosting(&[&[]]);
    world.ok(SetQuota {
        subject: QuotaSubject::Project(id(1)),
        limits: Limits {
            ips: Some(0),
            ..Limits::default()
        },
    });
    world.ok(claim(1, 1, installing(&[])));
    assert_eq!(world.state(1), ClaimState::Bound);
    assert_eq!(world.machine(1).allocation, None, "nothing is left of it");
    assert_eq!(world.tables.all::<Ip>().count(), 0);
    let trouble = world.claim(1).trouble.clone().unwrap();
    assert_eq!(trouble.reason, "QuotaExceeded");
    let provisioned = world.condition(1, ClaimConditionKind::Provisioned);
    assert_eq!(provisioned.reason, "QuotaExceeded");
    world.ok(RemoveQuota {
        subject: QuotaSubject::Project(id(1)),
    });
    world.tick(30_000);
    assert_eq!(world.state(1), ClaimState::Bound, "not due yet");
    world.tick(60_000);
    assert_eq!(world.state(1), ClaimState::Provisioning);
}

#[test]
fn a_host_that_is_taken_away_is_told() {
    for rebinds in [false, true] {
        let mut world = World::hosting(&[&[], &[]]);
        let spec = ClaimSpec {
            on_lost: match rebinds {
                true => LostRule::Rebind,
                false => LostRule::Stay,
            },
            ..installing(&[])
        };
        world.ok(claim(1, 1, spec));
        let host = world.host_of(1).unwrap();
        world.installed_claim(1);
        let taken = RemovePoolHost {
            machine: id(host),
            force: false,
        };
        assert_eq!(world.refused(taken.clone()), ErrorCode::HostBound);
        world.ok(RemovePoolHost {
            force: true,
            ..taken
        });
        assert_eq!(
            world.phase(host),
            Phase::ReclaimPowerOff,
            "the tenancy ends"
        );
        if rebinds {
            assert_eq!(world.state(1), ClaimState::Provisioning);
            assert_ne!(world.host_of(1), Some(host));
            continue;
        }
        assert_eq!((world.state(1), world.host_of(1)), (ClaimState::Lost, None));
        assert!(!world.condition(1, ClaimConditionKind::Associated).status);
        world.ok(deletion(1, 1));
        assert_eq!(world.state(1), ClaimState::Gone);
    }
}

#[test]
fn a_machine_that_is_retired_or_freed_by_an_administrator_is_lost() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    // Dead and off: an administrator may free it.
    let reading = BmcReading {
        machine: Some(id(1)),
        power_state: "off".into(),
        ..BmcReading::default()
    };
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings: vec![reading],
    });
    world.tick(DEAD_AFTER_MS + 1_000);
    world.ok(FreeMachine {
        id: id(1),
        project: None,
    });
    assert_eq!(world.state(1), ClaimState::Lost);
    assert_eq!(world.pool_host(1).binding, None);
    // Its host is offered again, but not before it is wiped.
    world.ok(claim(2, 2, ClaimSpec::default()));
    assert_eq!(world.reason(2), (PendingReason::AllBusy, 1));
    world.reclaimed(1, "zero");
    assert_eq!(world.host_of(2), Some(1));
}

#[test]
fn a_claim_moves_to_another_owner_with_its_host() {
    let mut world = World::hosting(&[&[], &[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    let moved = CreateClaim {
        id: claim_id(2),
        name: "new-owner/claim-1".into(),
        adopt: Some(claim_id(1)),
        ..claim(1, 1, installing(&[]))
    };
    assert_eq!(world.refused(moved.clone()), ErrorCode::ClaimNotPaused);
    world.ok(intent(
        1,
        ClaimSpec {
            paused: true,
            ..installing(&[])
        },
    ));
    // Another project's claim is not there to be adopted.
    let foreign = CreateClaim {
        project: id(2),
        ..moved.clone()
    };
    assert_eq!(world.refused(foreign), ErrorCode::NotFound);
    let adopted = world.ok(moved.clone()).claim().unwrap();
    assert_eq!(
        (adopted.id, adopted.state),
        (claim_id(1), ClaimState::Active)
    );
    assert_eq!(adopted.name, "new-owner/claim-1");
    let again = world.ok(moved).claim().unwrap();
    assert_eq!(again.id, adopted.id);
}

#[test]
fn the_record_of_a_claim_is_kept_for_a_day() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, ClaimSpec::default()));
    world.ok(deletion(1, 1));
    assert_eq!(world.state(1), ClaimState::Gone);
    assert_eq!(query::project_claims(&world.tables, id(1)).count(), 0);
    world.ok(deletion(1, 1));
    world.tick(CLAIM_KEPT_MS - 1);
    assert!(world.tables.get::<Claim>(&claim_id(1)).is_some());
    world.tick(1);
    assert!(world.tables.get::<Claim>(&claim_id(1)).is_none());
    // The name is free since the end.
    world.ok(CreateClaim {
        id: claim_id(5),
        ..claim(1, 1, ClaimSpec::default())
    });
}
