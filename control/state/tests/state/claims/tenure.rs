//! Pools beside owners, leases and node allocations: a machine is a host, or it is a project's.

use control_state::*;

use super::site::*;
use crate::leases::{LESSEE, OWNER, end, grant, owner};
use crate::node_allocations::{capable, wanted};
use crate::world::*;

/// A node allocation of an administrator, or of a project, for a machine that is in use.
fn backfill(number: u128, by: Option<u128>) -> CreateNodeAllocation {
    CreateNodeAllocation {
        resource_class: None,
        backfill: Some(id(1)),
        ..wanted(number, by, "gold")
    }
}

/// Machine 1 for a project, by its id.
fn by_id() -> AllocateMachine {
    AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(7)
    }
}

#[test]
fn a_machine_that_somebody_owns_leases_or_holds_enters_no_pool() {
    type Take = fn(&mut World);
    let own: Take = |world| {
        world.ok(owner(1, Some(OWNER)));
    };
    let lease: Take = |world| {
        world.ok(owner(1, Some(OWNER)));
        let lease = grant(world);
        world.ok(lease);
    };
    let hold: Take = |world| {
        world.ok(wanted(60, None, "gold"));
    };
    for (take, code, remedy) in [
        (own, ErrorCode::MachineOwned, "machine owner clear"),
        (lease, ErrorCode::MachineLeased, "machine lease end"),
        (hold, ErrorCode::MachineReserved, "node-allocation rm"),
    ] {
        let mut world = World::pooled();
        world.waiting(1);
        world.ok(capable(1, "gold", &[]));
        take(&mut world);
        assert_eq!(world.refused(host(1, &[])), code);
        let error = world.error(host(1, &[]));
        assert!(error.hint.contains(remedy), "{error:?}");
    }
}

#[test]
fn a_host_is_on_offer_to_claims_alone() {
    let mut world = World::hosting(&[&[]]);
    world.ok(capable(1, "gold", &[]));
    for is_bound in [false, true] {
        assert_eq!(world.refused(by_id()), ErrorCode::HostOfPool, "{is_bound}");
        assert_eq!(
            world.refused(allocation_of(7)),
            ErrorCode::NoMachineAvailable
        );
        let (partition, size) = (text(PARTITION), text(SIZE));
        let offered = query::allocatable_machines(&world.tables, &partition, &size);
        assert_eq!(offered.count(), 0);
        assert_eq!(world.refused(owner(1, Some(OWNER))), ErrorCode::HostOfPool);
        // Nobody owns it, so that nobody can lease it to others.
        let lease = grant(&world);
        assert_eq!(world.refused(lease), ErrorCode::NotFound);
        for (number, by) in [(60, None), (61, Some(OWNER))] {
            let number = number + u128::from(is_bound) * 10;
            let held = world.ok(wanted(number, by, "gold"));
            let held = held.node_allocation().unwrap();
            assert_eq!(held.machine, None, "{held:?}");
            // Hosts are not counted either: they are not the site's to hold.
            assert!(held.last_error.contains(": 0 machines"), "{held:?}");
        }
        if !is_bound {
            world.ok(claim(1, 1, ClaimSpec::default()));
        }
    }
}

#[test]
fn the_machine_under_a_claim_gets_no_node_allocation() {
    let mut world = World::hosting(&[&[]]);
    world.ok(capable(1, "gold", &[]));
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    // The claim's project is told what every project is told of a machine that is not its own.
    for by in [1, 2] {
        assert_eq!(
            world.refused(backfill(60, Some(by))),
            ErrorCode::NotFound,
            "{by}"
        );
    }
    assert_eq!(world.refused(backfill(60, None)), ErrorCode::HostOfPool);
}

#[test]
fn a_machine_changes_between_pool_and_owner() {
    let mut world = World::hosting(&[&[]]);
    world.ok(RemovePoolHost {
        machine: id(1),
        force: false,
    });
    world.ok(owner(1, Some(OWNER)));
    let lease = grant(&world);
    world.ok(lease);
    world.use_machine(7);
    // The end of the lease releases the machine, and the pool gets it once it is nobody's.
    world.ok(end(LeaseEnder::Administrator));
    world.ok(owner(1, None));
    assert_eq!(world.refused(host(1, &[])), ErrorCode::MachineAllocated);
    world.ok(claim(1, 2, ClaimSpec::default()));
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    world.ok(host(1, &[]));
    assert_eq!(world.host_of(1), None, "the lessee's data is on it");
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerOn, None);
    world.boot(1, "boot-9");
    world.wipe(1);
    assert_eq!(world.host_of(1), None, "hammer does not wait there yet");
    world.event(1, EventKind::Waiting);
    assert_eq!(world.host_of(1), Some(1));
}

#[test]
fn a_host_that_leaves_its_pool_is_wiped_before_its_owner_gets_it() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, LESSEE, installing(&[])));
    world.installed_claim(1);
    world.ok(RemovePoolHost {
        machine: id(1),
        force: true,
    });
    assert_eq!(world.state(1), ClaimState::Lost);
    world.ok(owner(1, Some(OWNER)));
    // The lost claim gives its project no way back to the machine.
    assert_eq!(world.refused(by_id()), ErrorCode::NotFound);
    let freed = FreeMachine {
        id: id(1),
        project: Some(id(LESSEE)),
    };
    assert_eq!(world.refused(freed), ErrorCode::NotFound);
    world.reclaimed(1, "zero");
    world.ok(capable(1, "gold", &[]));
    let held = world.ok(wanted(60, Some(OWNER), "gold"));
    assert_eq!(held.node_allocation().unwrap().machine, Some(id(1)));
}

/// A call or order for the binding of before is of an earlier epoch, also if the same claim gets the same
/// machine back.
#[test]
fn bindings_are_counted_on_when_a_host_leaves_its_pool_and_comes_back() {
    let mut world = World::hosting(&[&[]]);
    let spec = ClaimSpec {
        on_lost: LostRule::Rebind,
        ..installing(&[])
    };
    world.ok(claim(1, 1, spec));
    world.installed_claim(1);
    world.ok(RemovePoolHost {
        machine: id(1),
        force: true,
    });
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    world.ok(host(1, &[]));
    assert_eq!(world.pool_host(1).epoch, 1);
    let sent = life::bmc_desired(&world.tables, &text(PARTITION));
    assert!(sent.iter().all(|order| order.epoch == 1), "{sent:?}");
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerOn, None);
    world.boot(1, "boot-9");
    world.wipe(1);
    world.event(1, EventKind::Waiting);
    assert_eq!(world.host_of(1), Some(1));
    assert_eq!(world.claim(1).binding.as_ref().unwrap().epoch, 2);
    let late = DeleteClaim {
        epoch: Some(1),
        ..deletion(1, 1)
    };
    assert_eq!(world.refused(late), ErrorCode::Conflict);
}

#[test]
fn nothing_is_taken_from_a_locked_host() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    let locked = |state, description: &str| SetMachineState {
        id: id(1),
        state,
        description: description.into(),
    };
    world.ok(locked(Availability::Locked, "evidence"));
    let taken = RemovePoolHost {
        machine: id(1),
        force: true,
    };
    assert_eq!(world.refused(taken.clone()), ErrorCode::MachineLocked);
    // An eviction waits for the lock to end.
    world.ok(SetPool {
        policies: vec![only(2)],
        on_revoke: RevokeRule::Evict { grace_ms: 1_000 },
        ..pool(POOL)
    });
    world.tick(2_000);
    world.tick(10_000);
    assert_eq!(world.state(1), ClaimState::Active);
    world.ok(locked(Availability::Available, ""));
    world.tick(2_000);
    assert_eq!(world.state(1), ClaimState::Lost);
    assert_eq!(world.phase(1), Phase::ReclaimPowerOff);
    world.ok(taken);
}
