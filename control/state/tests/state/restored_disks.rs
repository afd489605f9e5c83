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
    before.waiting(2);
    let mut world = restored(&before);
    world.later(10_000);
    world.switch_obeys();
    // The hammer of the boot that the backup knows.
    world.ok(Tick {
        heard: [(id(2), world.now)].into(),
        ..Tick::default()
    });
    world.ok(ReconcileRestore {
        judge_silent: false,
    });
    let doubted = world.machine(1);
    assert!(doubted.dirty && doubted.clean_disks.is_empty());
    assert!(!world.machine(2).dirty);
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
