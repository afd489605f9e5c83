//! Hosts whose BMC no agent reaches get no claim.

use control_state::*;
use proto_types::Timestamp;

use super::site::*;
use crate::reach::{pass, read};
use crate::world::*;

#[test]
fn a_host_whose_bmc_nobody_reaches_waits_and_comes_back_by_itself() {
    let mut world = World::hosting(&[&[]]);
    read(&mut world, None);
    pass(&mut world, BMC_SILENT_AFTER_MS, Timestamp::ZERO);
    let host = world.pool_host(1);
    assert!(!host.seen.is_ready && host.is_clean(), "{host:?}");
    world.ok(claim(1, 1, installing(&[])));
    assert_eq!(world.reason(1), (PendingReason::AllBusy, 1));
    pass(&mut world, 60_000, Timestamp::ZERO);
    assert_eq!(world.host_of(1), None, "the second look finds nothing");
    // The command that brings the news binds it.
    read(&mut world, None);
    assert_eq!(world.host_of(1), Some(1));
    assert_eq!(world.state(1), ClaimState::Provisioning);
}

/// A claim that has its host keeps it.
#[test]
fn only_the_offer_of_an_unreached_host_ends() {
    let mut world = World::hosting(&[&["kind=a"]]);
    read(&mut world, None);
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.host_of(1), Some(1));
    pass(&mut world, BMC_SILENT_AFTER_MS, Timestamp::ZERO);
    assert!(world.machine(1).bmc.as_ref().unwrap().unreached);
    assert_eq!(world.host_of(1), Some(1));
    assert_eq!(world.state(1), ClaimState::Bound);
    // Its installation waits for the BMC, which boots the installed system.
    world.ok(UpdateClaim {
        epoch: Some(1),
        ..intent(1, installing(&[]))
    });
    assert_eq!(world.state(1), ClaimState::Bound);
    read(&mut world, None);
    assert_eq!(world.state(1), ClaimState::Provisioning);
}
