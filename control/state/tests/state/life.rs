//! The life of a machine, end to end and off the path.

use crate::world::*;
use control_state::life::{BootTarget, MachineOrder, boot_target};
use control_state::*;
use tests_support::announcement;

pub(crate) const PROVISIONING: u32 = PROVISIONING_VNI_DEFAULT;

pub(crate) fn target(world: &World) -> BootTarget {
    boot_target(&world.tables, id(1))
}

#[test]
fn the_whole_way_round() {
    let mut world = World::new();
    assert_eq!(target(&world), BootTarget::Hammer);

    world.boot(1, "boot-1");
    assert_eq!(
        (world.phase(1), world.order(1)),
        (Phase::Wiping, MachineOrder::Wipe)
    );
    assert_eq!(world.machine(1).size, Some(text(SIZE)));
    assert_eq!(world.machine(1).rack, "rack-1");
    assert_eq!(world.port(1), PROVISIONING);
    world.wipe(1);
    assert_eq!(
        (world.phase(1), world.order(1)),
        (Phase::Waiting, MachineOrder::Wait)
    );
    assert_eq!(
        world.refused(allocation_of(1)),
        ErrorCode::NoMachineAvailable,
        "not waiting yet"
    );
    world.event(1, EventKind::Waiting);

    let machine = world.allocate(1);
    assert_eq!(machine.phase, Phase::Installing);
    let MachineOrder::Install(order) = world.order(1) else {
        panic!("{:?}", world.order(1))
    };
    assert_eq!((order.attempt, order.hostname.as_str()), (1, "metal"));
    assert_eq!(order.image.digest, sha(7));
    assert_eq!(order.layout.id.as_str(), LAYOUT_DEFAULT);
    assert_eq!(order.ntp_servers, ["ntp.example"]);
    assert_eq!(
        order.networks[0].ips,
        ["10.128.0.1".parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(world.port(1), PROVISIONING, "still hammer's");

    world.event(1, EventKind::Installing);
    world.ok(installed(1, 1));
    assert_eq!(
        (world.phase(1), world.order(1)),
        (Phase::BootOrder, MachineOrder::Nothing)
    );
    assert_eq!(target(&world), BootTarget::Disk);
    world.bmc(BmcAction::BootDisk, None);
    assert_eq!(
        (world.phase(1), world.order(1)),
        (Phase::Rebooting, MachineOrder::Reboot)
    );
    assert_eq!(world.port(1), PROVISIONING);
    world.event(1, EventKind::BootingNewKernel);
    let vrf = machine.allocation.as_ref().unwrap().tenant_vrf().unwrap();
    assert_eq!(world.port(1), vrf);
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::Running);
    assert_eq!(world.log(1).last_error_event, None);
    assert!(!world.log(1).crash_loop);

    world.free(1);
    assert_eq!(world.phase(1), Phase::ReclaimPowerOff);
    assert_eq!(world.port(1), vrf, "the tenant's system still runs");
    assert_eq!(world.tables.all::<Ip>().count(), 1);
    world.bmc(BmcAction::PowerOff, None);
    assert_eq!(world.phase(1), Phase::ReclaimPorts);
    assert_eq!(world.port(1), PROVISIONING);
    assert!(
        world.open_orders().is_empty(),
        "not before the port is back"
    );
    assert!(world.machine(1).allocation.is_some());
    assert_eq!(world.tables.all::<Ip>().count(), 1);
    world.switch_obeys();
    assert_eq!(world.machine(1).allocation, None);
    assert_eq!(world.tables.all::<Ip>().count(), 0);
    assert_eq!(world.phase(1), Phase::ReclaimBoot);
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerOn, None);
    assert_eq!(world.phase(1), Phase::ReclaimRegister);
    world.boot(1, "boot-2");
    assert_eq!(world.order(1), MachineOrder::Wipe);
    world.wipe(1);
    world.event(1, EventKind::Waiting);
    assert_eq!(world.log(1).last_error_event, None);
    world.allocate(2);
}

#[test]
fn an_unknown_machine_is_dirty_and_not_on_offer() {
    let mut world = World::new();
    world.boot(1, "boot-1");
    assert!(world.machine(1).dirty);
    world.event(1, EventKind::Waiting);
    assert_eq!(
        world.refused(allocation_of(1)),
        ErrorCode::NoMachineAvailable
    );
    assert_eq!(
        world.order(1),
        MachineOrder::Wipe,
        "Waiting does not make it clean"
    );
}

/// Of the published stack's agents the first that control hears is the registration.
#[test]
fn a_machine_that_nobody_saw_registers_in_one_change() {
    let (mut once, mut twice) = (World::new(), World::new());
    let registers = |seen_in| RegisterMachine {
        seen_in,
        ..registration(1, "boot-1")
    };
    once.ok(registers(Some(text(PARTITION))));
    assert_eq!(twice.refused(registers(None)), ErrorCode::NotFound);
    let seen_at = twice.now;
    twice.ok(MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: None,
    });
    twice.ok(registers(None));
    let made = |world: &World| {
        let mut machine = world.machine(1).clone();
        // Changes are counted, and each has its time.
        machine.meta = Meta::default();
        (machine, world.log(1).state)
    };
    assert_eq!(made(&once), made(&twice));
    // Where it is not what it says, nothing changes.
    let elsewhere = registers(Some(text("elsewhere")));
    assert_eq!(once.refused(elsewhere), ErrorCode::NotFound);
}

#[test]
fn a_bmc_that_does_not_answer_isolates_the_port() {
    let mut world = World::new();
    world.running(1, 1);
    world.free(1);
    for _ in 0..STEP_ATTEMPTS_MAX {
        assert_eq!(world.phase(1), Phase::ReclaimPowerOff);
        assert_eq!(world.open_orders(), [BmcAction::PowerOff]);
        world.tick(ORDER_DEADLINE_MS);
    }
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Bmc));
    assert!(
        world.machine(1).reason.contains("power off failed"),
        "{}",
        world.machine(1).reason
    );
    assert_eq!(world.port(1), 0);
    assert_eq!(target(&world), BootTarget::None);
    world.switch_obeys();
    assert_eq!(world.machine(1).allocation, None);
    assert_eq!(world.tables.all::<Ip>().count(), 0);
    assert!(world.machine(1).dirty);
    assert!(world.open_orders().is_empty());

    let state = Availability::Available;
    world.ok(SetMachineState {
        id: id(1),
        state,
        description: String::new(),
    });
    assert_eq!((world.phase(1), world.port(1)), (Phase::ReclaimPowerOff, 0));
    world.bmc(BmcAction::PowerOff, Some("refused"));
    world.bmc(BmcAction::PowerOff, None);
    assert_eq!(world.port(1), PROVISIONING);
    world.switch_obeys();
    assert_eq!(world.phase(1), Phase::ReclaimBoot);
    world.bmc(BmcAction::BootPxe, Some("busy"));
    assert_eq!(
        world.open_orders(),
        [BmcAction::BootPxe, BmcAction::PowerOn],
        "the pair again"
    );
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerOn, None);
    world.boot(1, "boot-9");
    assert_eq!(world.order(1), MachineOrder::Wipe);
}

#[test]
fn freeing() {
    let mut world = World::new();
    world.waiting(1);
    let free = FreeMachine {
        id: id(1),
        project: Some(id(1)),
    };
    assert_eq!(
        world.refused(free.clone()),
        ErrorCode::NotFound,
        "not theirs"
    );
    let by_admin = FreeMachine {
        id: id(1),
        project: None,
    };
    assert_eq!(
        world.refused(by_admin.clone()),
        ErrorCode::MachineNotAllocated
    );
    world.allocate(1);
    let foreign = FreeMachine {
        id: id(1),
        project: Some(id(2)),
    };
    assert_eq!(world.refused(foreign), ErrorCode::NotFound);
    let set = |state, description: &str| SetMachineState {
        id: id(1),
        state,
        description: description.into(),
    };
    world.ok(set(Availability::Locked, "look"));
    assert_eq!(world.refused(free.clone()), ErrorCode::MachineLocked);
    world.ok(set(Availability::Available, ""));
    assert_eq!(world.refused(by_admin.clone()), ErrorCode::MachineAlive);
    let mut silent = world.clone();
    silent.tick(DEAD_AFTER_MS);
    assert_eq!(silent.refused(by_admin.clone()), ErrorCode::MachineAlive);
    let off = BmcReading {
        machine: Some(id(1)),
        address: "10.0.0.1:623".into(),
        power_state: "off".into(),
        observed_at: silent.now,
        ..BmcReading::default()
    };
    silent.ok(ReportBmc {
        partition: text(PARTITION),
        readings: vec![off],
    });
    silent.ok(by_admin.clone());
    world.ok(free.clone());
    let orders = world.open_orders();
    world.ok(free);
    assert_eq!(world.open_orders(), orders, "freeing twice is freeing once");
    world.ok(by_admin);
}

/// The answer to an event may be lost; its sender tells it again.
#[test]
fn an_event_that_is_told_again_is_there_once() {
    let mut world = World::new();
    world.ok(AnnounceNode {
        level: 5,
        ..announcement(1)
    });
    world.boot(1, "boot-1");
    let told = MachineEvent {
        id: id(1),
        kind: EventKind::Installing,
        message: "partition".into(),
        time: world.now,
    };
    world.ok(told.clone());
    let once = world.log(1).clone();
    world.later(5000);
    world.ok(told.clone());
    assert_eq!(*world.log(1), once);
    // At another time it is another attempt.
    world.ok(MachineEvent {
        time: world.now,
        ..told
    });
    assert_eq!(world.log(1).events.len(), once.events.len() + 1);
}
