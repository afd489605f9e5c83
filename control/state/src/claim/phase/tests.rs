//! The whole transition table, and every sight of a host in every state.

use std::collections::{BTreeMap, BTreeSet};

use strum::VariantArray as _;

use super::{ClaimEvent, HostSight, event_of, next};
use crate::claim::entity::ClaimState::{
    self, Active, Bound, Deprovisioning, Gone, Lost, Pending, Provisioning, Releasing,
};

/// Every state: a new one does not compile before it is here.
const STATES: [ClaimState; 8] = [
    Pending,
    Bound,
    Provisioning,
    Active,
    Deprovisioning,
    Releasing,
    Lost,
    Gone,
];

const fn place(state: ClaimState) -> usize {
    match state {
        Pending => 0,
        Bound => 1,
        Provisioning => 2,
        Active => 3,
        Deprovisioning => 4,
        Releasing => 5,
        Lost => 6,
        Gone => 7,
    }
}

/// The table of the specification, row by row.
fn specified() -> BTreeMap<(ClaimState, ClaimEvent), ClaimState> {
    use ClaimEvent::{
        Allocated, Deleted, HostBound, HostClean, HostLost, HostRuns, ImageRemoved, Rebound,
    };
    BTreeMap::from([
        ((Pending, HostBound), Bound),
        ((Pending, Deleted), Gone),
        ((Bound, Allocated), Provisioning),
        ((Bound, HostLost), Lost),
        ((Bound, Deleted), Releasing),
        ((Provisioning, HostRuns), Active),
        ((Provisioning, ImageRemoved), Deprovisioning),
        ((Provisioning, HostLost), Lost),
        ((Provisioning, Deleted), Releasing),
        ((Active, ImageRemoved), Deprovisioning),
        ((Active, HostLost), Lost),
        ((Active, Deleted), Releasing),
        ((Deprovisioning, HostClean), Bound),
        ((Deprovisioning, HostLost), Lost),
        ((Deprovisioning, Deleted), Releasing),
        ((Releasing, HostClean), Gone),
        ((Releasing, HostLost), Gone),
        ((Lost, Rebound), Pending),
        ((Lost, Deleted), Gone),
    ])
}

#[test]
fn every_transition_is_as_specified_and_no_other_happens() {
    let specified = specified();
    for (at, state) in STATES.into_iter().enumerate() {
        assert_eq!(place(state), at);
        for event in ClaimEvent::VARIANTS.iter().copied() {
            let wanted = specified.get(&(state, event)).copied();
            assert_eq!(next(state, event), wanted, "{event:?} in {state:?}");
        }
    }
}

#[test]
fn every_state_is_reached_and_can_be_left_by_deletion() {
    let mut reached = BTreeSet::from([Pending]);
    let mut fresh = vec![Pending];
    while let Some(state) = fresh.pop() {
        let events = ClaimEvent::VARIANTS.iter();
        let next = events.filter_map(|event| next(state, *event));
        fresh.extend(next.filter(|state| reached.insert(*state)));
    }
    assert_eq!(reached, BTreeSet::from(STATES));
    for state in STATES {
        let is_over = matches!(state, Releasing | Gone);
        let is_deleted = next(state, ClaimEvent::Deleted).is_some();
        assert_eq!(is_deleted, !is_over, "{state:?}");
    }
}

#[test]
fn a_sight_makes_only_events_that_count() {
    for state in STATES {
        for sight in HostSight::VARIANTS.iter().copied() {
            let Some(event) = event_of(state, sight) else {
                continue;
            };
            let leads = next(state, event);
            assert!(leads.is_some(), "{sight:?} makes {event:?} in {state:?}");
            assert!(state.has_host(), "{state:?} has no host to see");
        }
    }
}

#[test]
fn sights_of_a_host() {
    use ClaimEvent::{HostClean, HostLost, HostRuns};
    for (state, sight, event) in [
        (Bound, HostSight::Clean, None),
        (Bound, HostSight::Cleaning, None),
        (Bound, HostSight::Unwipeable, Some(HostLost)),
        (Bound, HostSight::Missing, Some(HostLost)),
        (Provisioning, HostSight::Installing, None),
        (Provisioning, HostSight::InstallFailed, None),
        (Provisioning, HostSight::Running, Some(HostRuns)),
        (Provisioning, HostSight::Leaving, Some(HostLost)),
        (Provisioning, HostSight::Clean, Some(HostLost)),
        (Active, HostSight::Running, None),
        (Active, HostSight::Leaving, Some(HostLost)),
        (Deprovisioning, HostSight::Running, None),
        (Deprovisioning, HostSight::Leaving, None),
        (Deprovisioning, HostSight::Cleaning, None),
        (Deprovisioning, HostSight::Clean, Some(HostClean)),
        (Deprovisioning, HostSight::Unwipeable, Some(HostLost)),
        (Releasing, HostSight::Leaving, None),
        (Releasing, HostSight::Clean, Some(HostClean)),
        (Releasing, HostSight::Missing, Some(HostLost)),
        (Pending, HostSight::Missing, None),
        (Lost, HostSight::Missing, None),
        (Gone, HostSight::Missing, None),
    ] {
        assert_eq!(event_of(state, sight), event, "{sight:?} in {state:?}");
    }
}
