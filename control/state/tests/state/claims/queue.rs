//! The order of waiting claims: first come, priority, quota, and what does not stand in the way.

use std::collections::BTreeMap;

use control_state::*;
use proto_types::*;

use super::site::*;
use crate::world::*;

/// One host that claim 9 of project 2 has.
fn taken(of: &[&str]) -> World {
    let mut world = World::hosting(&[of]);
    world.ok(claim(9, 2, asking(of)));
    assert_eq!(world.host_of(9), Some(1));
    world
}

#[test]
fn claims_are_served_in_the_order_of_their_arrival() {
    let mut world = taken(&[]);
    for number in 1..=3 {
        world.ok(claim(number, 1, ClaimSpec::default()));
    }
    assert_eq!(world.reason(1), (PendingReason::AllBusy, 1));
    assert_eq!(world.reason(2), (PendingReason::BehindEarlierClaim, 0));
    let mut last = deletion(9, 2);
    for number in 1..=3 {
        world.ok(last);
        assert_eq!(world.host_of(number), Some(1), "claim {number}");
        last = deletion(number, 1);
    }
}

#[test]
fn a_claim_that_cannot_be_served_is_in_nobodys_way() {
    let mut world = taken(&["kind=medium"]);
    world.ok(claim(1, 1, asking(&["kind=large"])));
    world.ok(claim(2, 1, asking(&["kind=medium"])));
    world.ok(deletion(9, 2));
    assert_eq!(world.host_of(2), Some(1));
    assert_eq!(world.reason(1), (PendingReason::NoMatch, 0));
}

#[test]
fn priority_counts_as_far_as_the_pool_allows() {
    // The policy's limit, the priority of the later claim, and who is served.
    for (allowed, priority, first) in [(100, 5, 2), (0, 5, 1), (3, 5, 2), (100, 0, 1)] {
        let mut world = taken(&[]);
        world.ok(SetPool {
            policies: vec![DeployPolicy {
                priority_max: allowed,
                ..everybody()
            }],
            ..pool(POOL)
        });
        world.ok(claim(1, 1, ClaimSpec::default()));
        // Of another project, so that they do not stand in one line.
        world.ok(claim(
            2,
            2,
            ClaimSpec {
                priority,
                ..asking(&[])
            },
        ));
        world.ok(deletion(9, 2));
        let served = (1..=2).find(|number| world.host_of(*number).is_some());
        assert_eq!(served, Some(first), "{priority} of {allowed}");
    }
}

#[test]
fn quotas_bound_claims_and_their_hosts_count_as_machines() {
    let bounded = |machines: Option<u32>, small: Option<u32>| Limits {
        machines,
        machines_of_size: small.map(|limit| (text(SIZE), limit)).into_iter().collect(),
        ..Limits::default()
    };
    for subject in [
        QuotaSubject::Project(id(1)),
        QuotaSubject::Tenant(text("acme")),
    ] {
        for limits in [bounded(Some(1), None), bounded(None, Some(1))] {
            let mut world = World::hosting(&[&[], &[]]);
            world.ok(SetQuota {
                subject: subject.clone(),
                limits,
            });
            world.ok(claim(1, 1, ClaimSpec::default()));
            world.ok(claim(2, 1, asking(&["kind=x"])));
            world.ok(intent(2, asking(&[])));
            assert_eq!(world.host_of(1).map(|_| ()), Some(()));
            assert_eq!(world.reason(2), (PendingReason::QuotaExceeded, 2));
            let quota = world.tables.get::<Quota>(&subject).unwrap();
            let counts = query::counts(&world.tables, quota);
            assert!(
                counts.machines == 1
                    || counts.machines_of_size.get(&text::<SizeId>(SIZE)) == Some(&1)
            );
            // Room is made by a larger quota, or by a claim that ends.
            let mut other = world.clone();
            other.ok(RemoveQuota {
                subject: subject.clone(),
            });
            assert!(other.host_of(2).is_some(), "a larger quota");
            world.ok(deletion(1, 1));
            assert!(world.host_of(2).is_some(), "a claim that ended");
        }
    }
}

#[test]
fn a_quota_that_blocks_one_project_blocks_no_other() {
    let mut world = taken(&[]);
    world.ok(SetQuota {
        subject: QuotaSubject::Project(id(1)),
        limits: Limits {
            machines: Some(0),
            ..Limits::default()
        },
    });
    world.ok(claim(1, 1, ClaimSpec::default()));
    world.ok(claim(2, 2, asking(&[])));
    world.ok(deletion(9, 2));
    assert_eq!(world.host_of(2), Some(1));
}

#[test]
fn a_paused_claim_is_not_bound_and_lets_others_pass() {
    let mut world = taken(&[]);
    let paused = ClaimSpec {
        paused: true,
        ..ClaimSpec::default()
    };
    world.ok(claim(1, 1, paused.clone()));
    world.ok(claim(2, 1, ClaimSpec::default()));
    assert_eq!(
        world.refused(intent(
            1,
            ClaimSpec {
                priority: 1,
                ..paused
            }
        )),
        ErrorCode::ClaimPaused
    );
    world.ok(deletion(9, 2));
    assert_eq!((world.host_of(1), world.host_of(2)), (None, Some(1)));
    world.ok(intent(1, ClaimSpec::default()));
    assert_eq!(world.reason(1), (PendingReason::AllBusy, 1));
}

#[test]
fn claims_of_a_project_are_bounded() {
    let mut world = World::pooled();
    for number in 0..32 {
        world.ok(claim(number, 1, asking(&[&format!("kind={number}")])));
    }
    let further = claim(100, 1, asking(&["kind=100"]));
    assert_eq!(world.refused(further), ErrorCode::TooMany);
    // One that waits in a line that is there, and one of another project, are none further.
    world.ok(claim(101, 1, asking(&["kind=1"])));
    world.ok(claim(102, 2, asking(&["kind=100"])));
    // A paused claim waits for nothing, and is a further one when it goes on.
    let paused = ClaimSpec {
        paused: true,
        ..asking(&["kind=100"])
    };
    world.ok(claim(103, 1, paused));
    let goes_on = intent(103, asking(&["kind=100"]));
    assert_eq!(world.refused(goes_on.clone()), ErrorCode::TooMany);
    world.ok(deletion(0, 1));
    world.ok(goes_on);
}

#[test]
fn what_no_command_woke_is_found_by_the_tick() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, asking(&["kind=large"])));
    // The row of the host as a restore brings it: no command has changed it.
    let mut changed = world.pool_host(1).clone();
    changed.meta.labels = labels(&["kind=large"]);
    let record = Record::PoolHost(changed.into());
    world
        .tables
        .load(Kind::PoolHost, &record.encode().unwrap(), 1)
        .unwrap();
    let mut world = World::of(world.tables, world.now);
    assert_eq!(world.host_of(1), None);
    world.tick(2_000);
    assert_eq!(world.host_of(1), Some(1));
}

#[test]
fn every_claim_that_can_be_served_is_served_within_as_many_releases_as_stand_before_it() {
    let mut world = taken(&[]);
    let mut releases: BTreeMap<u128, usize> = BTreeMap::new();
    for number in 11..=30 {
        let project = 1 + number % 2;
        world.ok(claim(number, project, asking(&[])));
    }
    let mut holder = (9, 2);
    for release in 1..=20 {
        world.ok(deletion(holder.0, holder.1));
        let served = (11..=30)
            .find(|number| world.host_of(*number).is_some())
            .unwrap();
        releases.insert(served, release);
        holder = (served, 1 + served % 2);
    }
    for (claim, release) in releases {
        assert_eq!(
            u128::try_from(release).unwrap() + 10,
            claim,
            "claim {claim}"
        );
    }
    let served: Vec<ClaimId> = world.tables.all::<Claim>().map(|claim| claim.id).collect();
    assert_eq!(served.len(), 21);
}
