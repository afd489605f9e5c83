//! The end of leases by their date, decided by ticks.

use super::*;
use crate::agents::certificate;

/// A leased machine on which the lessee's system runs.
fn in_use() -> World {
    let mut world = leased();
    world.use_machine(1);
    world
}

#[test]
fn a_lease_warns_and_ends_and_the_machine_is_wiped() {
    let mut world = in_use();
    let expires = world.lease().unwrap().expires_at;
    world.tick(8 * DAY_MS);
    assert_eq!(world.lease().unwrap().warned_at, None);
    world.tick(DAY_MS);
    let warned = world.lease().unwrap().warned_at;
    assert_eq!(warned, Some(world.now));
    assert_eq!(world.machine(1).tenure.lease_warned_at, warned);
    assert_eq!(world.phase(1), Phase::Running);
    // The next tick has nothing to say.
    world.later(1000);
    assert!(!tick_may_change(&world.tables, &Tick::default(), world.now));

    let rest = expires.since_ms(world.now);
    world.tick(rest - 1);
    assert!(world.lease().is_some());
    let issued = certificate(&world, "serial", Some(1));
    world.ok(issued);
    world.tick(1);
    assert_eq!(world.lease(), None);
    assert_eq!(world.phase(1), Phase::ReclaimPowerOff);
    assert!(world.machine(1).reason.contains("reached its end"));
    let revoked = world.tables.get::<Certificate>(&"serial".to_owned());
    let revoked = revoked.unwrap();
    assert_eq!(revoked.revoked_at, Some(world.now));
    assert_eq!(revoked.revoked_reason, "the lease ended");
    assert_eq!(world.machine(1).tenure.pool(), MachinePool::Of(id(OWNER)));

    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerOn, None);
    assert!(world.machine(1).dirty && world.machine(1).allocation.is_none());
    world.waiting_again();
    // The lessee has lost it.
    assert_eq!(world.refused(named(2)), ErrorCode::NotFound);
}

impl World {
    /// Machine 1 after its reclaim: wiped, and free.
    fn waiting_again(&mut self) {
        self.boot(1, "boot-2");
        self.wipe(1);
        self.event(1, EventKind::Waiting);
        assert_eq!(self.phase(1), Phase::Waiting);
        assert!(!self.machine(1).dirty);
    }
}

#[test]
fn nothing_is_begun_after_the_end() {
    let mut world = leased();
    world.later(10 * DAY_MS);
    // No tick yet: the date itself is enough.
    assert_eq!(world.refused(named(1)), ErrorCode::MachineNotLeased);
    let more = extend(OWNER, world.now.plus_ms(DAY_MS));
    assert_eq!(world.refused(more), ErrorCode::MachineNotLeased);
    let to = request(LESSEE, Some(STRANGER));
    assert_eq!(world.refused(to), ErrorCode::MachineNotLeased);
}

#[test]
fn an_extension_takes_the_warning_back() {
    let mut world = leased();
    world.tick(9 * DAY_MS);
    assert!(world.lease().unwrap().warned_at.is_some());
    let longer = extend(OWNER, world.now.plus_ms(30 * DAY_MS));
    world.ok(longer);
    assert_eq!(world.lease().unwrap().warned_at, None);
    assert_eq!(world.machine(1).tenure.lease_warned_at, None);
    world.tick(2 * DAY_MS);
    assert!(world.lease().is_some());
    world.tick(27 * DAY_MS);
    assert!(world.lease().unwrap().warned_at.is_some());
}

#[test]
fn a_locked_machine_is_left_alone_until_it_is_unlocked() {
    let mut world = in_use();
    world.ok(SetMachineState {
        id: id(1),
        state: Availability::Locked,
        description: "evidence".into(),
    });
    assert_eq!(world.refused(end(by(LESSEE))), ErrorCode::MachineLocked);
    world.tick(11 * DAY_MS);
    assert!(world.lease().unwrap().is_over(world.now));
    assert_eq!(world.phase(1), Phase::Running);
    // It costs no entry of the log either.
    world.later(1000);
    assert!(!tick_may_change(&world.tables, &Tick::default(), world.now));
    world.ok(SetMachineState {
        id: id(1),
        state: Availability::Available,
        description: String::new(),
    });
    world.tick(1000);
    assert_eq!(
        (world.lease(), world.phase(1)),
        (None, Phase::ReclaimPowerOff)
    );
}

#[test]
fn a_clock_that_jumps_ends_no_lease() {
    let mut world = leased();
    world.ok(Tick::default());
    world.later(20 * DAY_MS);
    world.ok(Tick::default());
    assert!(world.lease().is_some(), "the jump is held");
    let time = world.now;
    world.ok(AcceptTime { time });
    world.ok(Tick::default());
    assert_eq!(world.lease(), None);
}

#[test]
fn a_lease_that_ends_takes_its_node_allocation_along() {
    let mut world = leased();
    world.ok(SetMachineCapability {
        machine: id(1),
        project: None,
        resource_class: ClassChange::Set("gold".parse().unwrap()),
        traits: None,
    });
    world.ok(crate::node_allocations::wanted(60, Some(LESSEE), "gold"));
    assert_eq!(world.machine(1).tenure.reserved_by, Some(id(60)));
    // The owner does not withdraw what the lessee holds.
    assert_eq!(world.refused(end(by(OWNER))), ErrorCode::MachineReserved);
    world.tick(11 * DAY_MS);
    assert_eq!(world.lease(), None);
    assert_eq!(world.tables.all::<NodeAllocation>().count(), 0);
    assert_eq!(world.machine(1).tenure.reserved_by, None);
}

/// So many leases of one day, as if they had been granted one by one.
fn many_leases(count: u128) -> World {
    let world = leased();
    let (mut machine, lease) = (world.machine(1).clone(), world.lease().unwrap().clone());
    machine.hardware.nics.clear();
    machine.links.clear();
    let mut tables = world.tables;
    for number in 1..count {
        let machine = Machine {
            id: id(0x1000 + number),
            ..machine.clone()
        };
        let lease = Lease {
            machine: machine.id,
            ..lease.clone()
        };
        for record in [Record::Machine(machine.into()), Record::Lease(lease.into())] {
            let bytes = record.encode().unwrap();
            tables.load(record.kind(), &bytes, 1).unwrap();
        }
    }
    World::of(tables, world.now)
}

#[test]
fn leases_that_end_together_end_in_several_ticks() {
    let mut world = many_leases(300);
    let count = |world: &World| world.tables.all::<Lease>().count();
    assert_eq!(count(&world), 300);
    world.tick(11 * DAY_MS);
    assert_eq!(count(&world), 300 - 256);
    world.tick(2000);
    assert_eq!(count(&world), 0);
}
