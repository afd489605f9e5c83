//! The disks of machines that a restored state records as free.

use control_state::*;

use crate::restored::restored;
use crate::world::*;

/// A project may have had a free machine since the backup. That nobody uses it now says nothing about its
/// disks: a host is kept for its project with the data.
#[test]
fn disks_that_nothing_proves_are_wiped_before_anybody_gets_them() {
    let mut before = upgraded();
    before.ok(Tick::default());
    before.waiting(1);
    let mut world = restored(&before);
    world.later(10_000);
    world.switch_obeys();
    world.ok(ReconcileRestore {
        judge_silent: false,
    });
    let doubted = world.machine(1);
    assert!(doubted.dirty && doubted.clean_disks.is_empty());
    assert_eq!(world.open_orders(), [], "it is locked, and left alone");
    // An operator found that nobody uses it.
    world.ok(SetMachineState {
        id: id(1),
        state: Availability::Available,
        description: String::new(),
    });
    assert!(query::machine_obstacle(&world.tables, id(1)).is_some());
    assert!(world.machine(1).dirty);
    let told = [BmcAction::BootPxe, BmcAction::PowerCycle];
    assert_eq!(world.open_orders(), told);
    world.boot(1, "boot-2");
    assert_eq!(world.order(1), life::MachineOrder::Wipe);
}

/// The hammer of a boot that the backup knows shows that no system of a tenant runs on the machine. It may
/// have installed one since the backup, whose data are on the disks.
#[test]
fn the_boot_that_the_backup_knows_does_not_prove_its_disks() {
    let mut before = upgraded();
    before.ok(Tick::default());
    before.waiting(1);
    let mut world = restored(&before);
    world.later(10_000);
    world.switch_obeys();
    world.ok(Tick {
        heard: [(id(1), world.now)].into(),
        ..Tick::default()
    });
    assert_eq!(world.open_orders(), [], "not before the reconciliation");
    world.ok(ReconcileRestore {
        judge_silent: false,
    });
    let machine = world.machine(1);
    assert_eq!(machine.condition.state, Availability::Available);
    assert!(machine.dirty && machine.clean_disks.is_empty());
    let refused = world.refused(allocation_of(1));
    assert_eq!(refused, ErrorCode::NoMachineAvailable);
    // Whatever it says in this boot.
    let late = WipeDone {
        id: id(1),
        disks: vec![wiped("/dev/vda", None)],
    };
    assert_eq!(world.refused(late), ErrorCode::WrongPhase);
    world.event(1, EventKind::Waiting);
    assert!(world.machine(1).dirty);
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerCycle, None);
    world.boot(1, "boot-2");
    assert_eq!(world.order(1), life::MachineOrder::Wipe);
    world.wipe(1);
    world.event(1, EventKind::Waiting);
    world.allocate(1);
}

#[test]
fn an_operator_may_trust_the_backup() {
    let mut before = upgraded();
    before.ok(Tick::default());
    before.waiting(1);
    let mut world = restored(&before);
    world.later(10_000);
    world.ok(ReconcileRestore { judge_silent: true });
    assert!(!world.machine(1).dirty);
    assert_eq!(world.open_orders(), []);
}
