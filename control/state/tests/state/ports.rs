//! Ports and numbers change hands only after the switch said that the old owner's port is out.

use control_state::*;
use proto_types::Vni;

use crate::world::*;

const PROVISIONING: u32 = PROVISIONING_VNI_DEFAULT;
const MINUTE_MS: u64 = 60_000;

/// Machine 1 runs for project 1, is freed, and its BMC does not cut the power.
fn not_powered_off() -> World {
    let mut world = World::new();
    world.running(1, 1);
    world.switch_obeys();
    world.free(1);
    for _ in 0..STEP_ATTEMPTS_MAX {
        world.bmc(BmcAction::PowerOff, Some("no answer"));
    }
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Bmc));
    world
}

fn delete_machine() -> DeleteMachine {
    DeleteMachine { id: id(1) }
}

fn delete_network() -> DeleteNetwork {
    DeleteNetwork {
        id: text("private"),
        project: Some(id(1)),
    }
}

fn set_available(world: &mut World) {
    world.ok(SetMachineState {
        id: id(1),
        state: Availability::Available,
        description: String::new(),
    });
}

/// The leaf reports one port.
fn observe(world: &mut World, port: &str, vni: u32, oper_up: bool) {
    let seen = PortObserved {
        admin_up: true,
        oper_up,
        vni: Vni::try_from(vni).unwrap(),
        ..PortObserved::default()
    };
    let applied_generation = world.tables.revision();
    world.ok(ReportSwitch {
        id: text("leaf1"),
        applied_term: 1,
        applied_generation,
        duration_ms: 1,
        error: None,
        ports: [(port.to_owned(), seen)].into(),
        health: None,
    });
}

fn vrf(world: &World) -> u32 {
    let network = world.tables.get::<Network>(&text("private")).unwrap();
    network.vrf.unwrap()
}

#[test]
fn a_failed_reclaim_keeps_its_numbers_until_the_port_is_seen_isolated() {
    let mut world = not_powered_off();
    assert_eq!(world.port(1), 0, "wanted isolated");
    let allocation = world.machine(1).allocation.clone().expect("still there");
    let address = allocation.networks[0].ips[0];
    assert_eq!(world.tables.all::<Ip>().count(), 1);
    assert_eq!(world.refused(delete_network()), ErrorCode::StillInUse);
    assert_eq!(world.refused(delete_machine()), ErrorCode::MachineAllocated);
    world.waiting(2);
    let other = world.allocate(2).allocation.clone().unwrap();
    assert_ne!(other.asn, allocation.asn);
    assert_ne!(other.networks[0].ips[0], address);
    // What the switch said before is no answer, and neither is silence.
    world.tick(MINUTE_MS);
    assert!(world.machine(1).allocation.is_some());

    world.switch_obeys();
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Bmc));
    assert_eq!(world.machine(1).allocation, None);
    let key = IpKey {
        namespace: None,
        ip: address,
    };
    assert_eq!(world.tables.get::<Ip>(&key), None);
    assert_eq!(world.port(1), 0, "isolated as before");
}

#[test]
fn an_isolated_machine_is_not_deleted_while_it_has_a_carrier() {
    let mut world = not_powered_off();
    world.switch_obeys();
    assert_eq!(world.machine(1).allocation, None);
    assert_eq!(
        world.refused(delete_machine()),
        ErrorCode::WrongPhase,
        "its port would go back to the provisioning segment"
    );
    world.boot(1, "boot-9");
    assert_eq!(world.port(1), 0, "a registration is no way out");
    observe(&mut world, "swp1", 0, false);
    world.ok(delete_machine());
}

#[test]
fn a_segment_in_which_a_port_is_seen_has_no_other_owner() {
    let mut world = World::new();
    let vrf = vrf(&world);
    // A cable that nobody knows of any more.
    observe(&mut world, "swp8", vrf, true);
    assert_eq!(world.refused(delete_network()), ErrorCode::StillInUse);
    observe(&mut world, "swp8", PROVISIONING, true);
    world.ok(delete_network());
    // The same number does not come back while it is seen, whoever asks for it.
    observe(&mut world, "swp8", vrf + 1, true);
    let next = world.ok(child("another", 2)).network().unwrap();
    assert_eq!(next.vrf, Some(vrf + 2));
    let external = CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["192.0.2.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(vrf + 1),
        ..network("internet")
    };
    assert_eq!(world.refused(external), ErrorCode::StillInUse);
    let boots_there = [(label::PROVISIONING_VNI.to_owned(), (vrf + 1).to_string())];
    let relabelled = relabel(LabelsUpdate::Replace(boots_there.into()));
    assert_eq!(world.refused(relabelled), ErrorCode::InvalidField);
}

#[test]
fn no_machine_is_powered_on_in_its_last_tenants_segment() {
    let mut world = World::new();
    world.running(1, 1);
    world.switch_obeys();
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    let waits = |world: &World| {
        assert!(world.open_orders().is_empty(), "{:?}", world.open_orders());
        assert!(world.machine(1).allocation.is_some(), "numbers are kept");
        assert_eq!(world.tables.all::<Ip>().count(), 1);
        world.machine(1).reason.clone()
    };
    assert_eq!(waits(&world), "");
    world.tick(30_000);
    assert_eq!(world.phase(1), Phase::ReclaimPorts);
    assert!(waits(&world).contains("leaf1 has not reported that port swp1"));
    world.tick(10 * MINUTE_MS);
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Ports));
    assert!(waits(&world).contains("leaf1 has not reported that port swp1"));
    for number in 0..3 {
        world.tick(60 * MINUTE_MS);
        world.boot(1, &format!("boot-{number}"));
        world.free(1);
        waits(&world);
    }
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Ports));
    assert_eq!(
        life::boot_target(&world.tables, id(1)),
        life::BootTarget::None
    );

    // The switch is back. Somebody may have powered the machine on meanwhile.
    world.switch_obeys();
    assert_eq!(world.machine(1).allocation, None);
    assert_eq!(world.phase(1), Phase::ReclaimPowerOff);
    world.bmc(BmcAction::PowerOff, None);
    assert_eq!(world.phase(1), Phase::ReclaimBoot);
}

#[test]
fn a_switch_that_is_deleted_by_force_holds_nothing_up() {
    let mut world = World::new();
    world.running(1, 1);
    world.switch_obeys();
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.ok(DeleteSwitch {
        id: text("leaf1"),
        force: true,
    });
    assert_eq!(world.phase(1), Phase::ReclaimBoot);
    assert_eq!(world.machine(1).allocation, None);
}

#[test]
fn a_held_machine_is_reclaimed_again() {
    let mut world = not_powered_off();
    set_available(&mut world);
    assert_eq!((world.phase(1), world.port(1)), (Phase::ReclaimPowerOff, 0));
    assert!(world.machine(1).allocation.is_some());
    world.bmc(BmcAction::PowerOff, None);
    assert_eq!(world.phase(1), Phase::ReclaimPorts);
    assert!(world.machine(1).allocation.is_some());
    assert_eq!(world.port(1), PROVISIONING);
    world.switch_obeys();
    assert_eq!(world.phase(1), Phase::ReclaimBoot);
    assert_eq!(world.machine(1).allocation, None);
}

/// Installed, told to reboot, and hammer's last word did not come.
fn rebooting() -> World {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    world.event(1, EventKind::Installing);
    world.ok(installed(1, 1));
    world.bmc(BmcAction::BootDisk, None);
    assert_eq!(world.order(1), life::MachineOrder::Reboot);
    world
}

#[test]
fn the_port_waits_until_hammer_is_gone() {
    let mut world = rebooting();
    world.tick(59_000);
    assert!(world.open_orders().is_empty());
    world.tick(1_000);
    assert_eq!(world.port(1), PROVISIONING, "hammer may hang");
    let cycle = [BmcAction::BootDisk, BmcAction::PowerCycle];
    assert_eq!(world.open_orders(), cycle);
    world.tick(1_000);
    assert_eq!(world.open_orders(), cycle, "once is enough");
    world.bmc(BmcAction::BootDisk, None);
    assert_eq!(world.port(1), PROVISIONING);
    world.bmc(BmcAction::PowerCycle, None);
    assert_eq!(world.port(1), vrf(&world));
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::Running);
}

#[test]
fn without_a_power_cycle_the_port_stays() {
    let mut world = rebooting();
    let mut cycles = 0;
    for _ in 0..60 {
        world.tick(30_000);
        if world.open_orders().contains(&BmcAction::PowerCycle) {
            world.bmc(BmcAction::BootDisk, Some("no answer"));
            world.bmc(BmcAction::PowerCycle, Some("no answer"));
            cycles += 1;
        }
        assert_eq!(world.port(1), PROVISIONING);
    }
    assert_eq!(cycles, STEP_ATTEMPTS_MAX);
    let reason = &world.machine(1).reason;
    assert!(
        reason.contains("stay in the provisioning segment"),
        "{reason}"
    );
    // The installed system's own call is proof enough.
    world.phone_home(1);
    assert_eq!(world.port(1), vrf(&world));
}

#[test]
fn what_an_admin_power_cycles_is_gone_too() {
    let order = |action| OrderBmc {
        user: None,
        machine: id(1),
        project: None,
        action,
        description: String::new(),
    };
    let mut world = rebooting();
    world.ok(order(BmcAction::PowerCycle));
    assert_eq!(world.port(1), PROVISIONING);
    world.bmc(BmcAction::PowerCycle, None);
    assert_eq!(world.port(1), vrf(&world));

    // An order from before hammer was told to leave proves nothing.
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    world.ok(order(BmcAction::PowerReset));
    world.later(1_000);
    world.ok(installed(1, 1));
    world.tick(30_000);
    assert_eq!(world.phase(1), Phase::Rebooting);
    world.bmc(BmcAction::PowerReset, None);
    assert_eq!(world.port(1), PROVISIONING);
}

#[test]
fn a_boot_that_is_told_late_is_not_the_way_to_the_disk() {
    let mut world = rebooting();
    let seen = |seen_at| MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: None,
    };
    let now = world.now;
    world.ok(seen(ms(now.ms() - 1)));
    assert_eq!(world.port(1), PROVISIONING, "that was hammer's own boot");
    world.later(5_000);
    world.ok(seen(world.now));
    assert_eq!(world.port(1), vrf(&world));
}
