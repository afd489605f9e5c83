//! Conditions and events: why nothing matched, since when, and by which generation.

use control_state::*;

use super::site::*;
use crate::world::*;

use ClaimConditionKind::{Associated, Paused, PolicySatisfied, Provisioned, Ready, Synchronized};

/// The conditions that hold.
fn holding(world: &World, number: u128) -> Vec<ClaimConditionKind> {
    let conditions = world.claim(number).conditions.iter();
    conditions
        .filter(|one| one.status)
        .map(|one| one.kind)
        .collect()
}

#[test]
fn conditions_follow_the_claim() {
    let mut world = World::pooled();
    world.ok(claim(1, 1, installing(&[])));
    assert_eq!(holding(&world, 1), [PolicySatisfied]);
    let associated = world.condition(1, Associated);
    assert_eq!(associated.reason, "NoMatch");
    world.waiting(1);
    world.ok(host(1, &[]));
    assert_eq!(
        holding(&world, 1),
        [Associated, PolicySatisfied, Synchronized]
    );
    assert_eq!(world.condition(1, Provisioned).reason, "Installing");
    world.installed_claim(1);
    let all = [
        Associated,
        PolicySatisfied,
        Synchronized,
        Provisioned,
        Ready,
    ];
    assert_eq!(holding(&world, 1), all);
    world.ok(intent(
        1,
        ClaimSpec {
            paused: true,
            ..installing(&[])
        },
    ));
    assert!(world.condition(1, Paused).status);
    assert!(!world.condition(1, Ready).status);
}

#[test]
fn the_time_of_a_condition_is_that_of_its_last_change() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, ClaimSpec::default()));
    let since = world.condition(1, Associated).since;
    world.later(60_000);
    world.ok(intent(1, installing(&[])));
    assert_eq!(world.condition(1, Associated).since, since);
    let generation = world.claim(1).meta.generation;
    assert_eq!(generation, 2);
    assert_eq!(world.claim(1).observed_generation, 2);
    assert_eq!(world.condition(1, Associated).generation, 2);
    // A paused claim has not acted on its newest intent.
    world.ok(intent(
        1,
        ClaimSpec {
            paused: true,
            ..installing(&[])
        },
    ));
    assert_eq!(world.claim(1).meta.generation, 3);
    assert_eq!(world.claim(1).observed_generation, 2);
}

#[test]
fn events_say_what_happened_once() {
    let mut world = World::pooled();
    world.ok(claim(1, 1, asking(&["kind=medium"])));
    for _ in 0..3 {
        world.tick(60_000);
    }
    let reasons = |world: &World| -> Vec<String> {
        let notes = world.claim(1).notes.iter();
        notes.map(|note| note.reason.clone()).collect()
    };
    assert_eq!(reasons(&world), ["NoMatch"]);
    world.waiting(1);
    world.ok(host(1, &["kind=medium"]));
    world.ok(deletion(1, 1));
    assert_eq!(
        reasons(&world),
        ["NoMatch", "HostBound", "Deleted", "Released"]
    );
}

#[test]
fn an_optimistic_lock_holds_against_a_change_meanwhile() {
    let mut world = World::pooled();
    world.ok(claim(1, 1, ClaimSpec::default()));
    let change = |expected| UpdateClaim {
        expected: Some(expected),
        ..intent(1, asking(&["a=b"]))
    };
    assert_eq!(world.refused(change(2)), ErrorCode::Conflict);
    world.ok(change(1));
    assert_eq!(world.refused(change(1)), ErrorCode::Conflict);
}
