//! Machines that a boot server sent to their disk by what it knew last.

use control_state::{BmcAction, EventKind, MachineSeen, Phase};
use proto_types::Timestamp;

use crate::world::{PARTITION, World, id, mac, text};

fn to_disk(number: u128, seen_at: Timestamp) -> MachineSeen {
    MachineSeen {
        id: id(number),
        partition: text(PARTITION),
        mac: Some(mac(number)),
        seen_at,
        to_disk: true,
        stated_at: None,
        relayed: None,
    }
}

/// Freed, and on its way to hammer.
fn given_back() -> World {
    let mut world = World::new();
    world.running(1, 1);
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    world.later(30_000);
    world.bmc(BmcAction::BootPxe, None);
    world
}

#[test]
fn a_machine_that_runs_its_last_tenants_system_is_called_back() {
    let mut world = given_back();
    world.bmc(BmcAction::PowerOn, None);
    assert_eq!(world.phase(1), Phase::ReclaimRegister);
    world.later(5_000);
    let told = to_disk(1, world.now);
    world.later(2_500);
    // Its answer came too late for pixie.
    world.ok(MachineSeen {
        to_disk: false,
        stated_at: None,
        ..told.clone()
    });
    assert!(world.open_orders().is_empty());
    world.ok(told.clone());
    let again = [BmcAction::BootPxe, BmcAction::PowerCycle];
    assert_eq!(world.open_orders(), again);
    let last = world.log(1).events.last().unwrap().clone();
    assert_eq!(last.kind, EventKind::PlannedReboot);
    assert!(last.message.contains("from its disk"), "{}", last.message);

    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerCycle, None);
    world.later(1_000);
    world.ok(told);
    assert!(world.open_orders().is_empty(), "told twice, done once");
    world.boot(1, "boot-9");
    assert_eq!(world.phase(1), Phase::Wiping);
}

#[test]
fn also_before_its_bmc_has_said_that_it_is_on() {
    let mut world = given_back();
    world.later(5_000);
    world.ok(to_disk(1, world.now));
    let again = [BmcAction::BootPxe, BmcAction::PowerCycle];
    assert_eq!(world.open_orders(), again);
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerCycle, None);
    assert_eq!(world.phase(1), Phase::ReclaimRegister);
}

#[test]
fn who_has_been_heard_since_or_belongs_on_its_disk_stays() {
    let mut world = World::new();
    let before = world.now;
    world.later(1_000);
    world.waiting(1);
    world.ok(to_disk(1, before));
    assert!(world.open_orders().is_empty(), "heard since");
    world.running(2, 2);
    world.ok(to_disk(2, world.now));
    assert!(world.open_orders().is_empty(), "its tenant's machine");
    assert_eq!(world.phase(2), Phase::Running);
}
