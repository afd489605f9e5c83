//! Owners, lessees and leases of machines.

mod expiry;
mod properties;
mod rules;
mod usage;

use crate::world::*;
use control_state::*;
use proto_types::*;

pub(crate) const DAY_MS: u64 = 24 * 3_600_000;
/// The project that owns machine 1 in [`leased`].
pub(crate) const OWNER: u128 = 2;
/// The project that leases it.
pub(crate) const LESSEE: u128 = 1;
/// A project without a relation to it.
pub(crate) const STRANGER: u128 = 3;

/// A world with three projects, and a machine on offer.
pub(crate) fn with_machine() -> World {
    let mut world = World::new();
    world.ok(project(STRANGER, "acme"));
    world.waiting(1);
    world
}

/// The same machine, which a project owns.
pub(crate) fn owned() -> World {
    let mut world = with_machine();
    world.ok(owner(1, Some(OWNER)));
    world
}

/// The same machine, which another project leases for ten days.
pub(crate) fn leased() -> World {
    let mut world = owned();
    let grant = grant(&world);
    world.ok(grant);
    world
}

pub(crate) fn owner(machine: u128, owner: Option<u128>) -> SetMachineOwner {
    SetMachineOwner {
        machine: id(machine),
        owner: owner.map(id),
    }
}

/// The owner leases machine 1 for ten days.
pub(crate) fn grant(world: &World) -> GrantLease {
    GrantLease {
        id: id(500),
        machine: id(1),
        project: id(OWNER),
        lessee: id(LESSEE),
        expires_at: world.now.plus_ms(10 * DAY_MS),
        extendable_until: None,
        warning_ms: None,
        comment: String::new(),
    }
}

pub(crate) fn extend(project: u128, expires_at: Timestamp) -> ExtendLease {
    ExtendLease {
        machine: id(1),
        project: id(project),
        lease: None,
        expires_at: Some(expires_at),
        limit: ExtensionLimit::Keep,
    }
}

pub(crate) fn end(by: LeaseEnder) -> EndLease {
    EndLease {
        machine: id(1),
        by,
        lease: None,
        reason: String::new(),
    }
}

pub(crate) fn by(project: u128) -> LeaseEnder {
    LeaseEnder::Project(id(project))
}

pub(crate) fn request(project: u128, to: Option<u128>) -> RequestLeaseTransfer {
    RequestLeaseTransfer {
        machine: id(1),
        project: id(project),
        lease: None,
        to: to.map(id),
    }
}

pub(crate) fn decide(project: u128, to: u128, consent: bool) -> DecideLeaseTransfer {
    DecideLeaseTransfer {
        machine: id(1),
        project: id(project),
        lease: None,
        to: id(to),
        consent,
    }
}

/// Project 1 wants machine 1.
pub(crate) fn named(allocation: u128) -> AllocateMachine {
    AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(allocation)
    }
}

impl World {
    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.tables.get::<Lease>(&id(1)).map(AsRef::as_ref)
    }

    /// Project 1 uses machine 1, which is on offer to it: allocated, installed and phoning home.
    pub(crate) fn use_machine(&mut self, allocation: u128) {
        self.ok(named(allocation));
        self.install(1, allocation);
        self.phone_home(1);
        self.switch_obeys();
        assert_eq!(self.phase(1), Phase::Running);
    }

    /// The error of a command that must be refused.
    pub(crate) fn error(&mut self, op: impl Into<Op>) -> StateError {
        let outcome = self.apply(op);
        assert_eq!(outcome.changes, vec![]);
        outcome.result.expect_err("must be refused")
    }
}
