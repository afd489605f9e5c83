//! The life of a machine, end to end and off the path.

use control_state::life::{BootTarget, MachineOrder, boot_target};
use control_state::*;

use crate::world::*;

const PROVISIONING: u32 = PROVISIONING_VNI_DEFAULT;

fn target(world: &World) -> BootTarget {
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
    let op = Op::from(registers(Some(text(PARTITION))));
    assert_eq!(op.level(), SEEN_IN_LEVEL);
    once.ok(op);
    assert_eq!(twice.refused(registers(None)), ErrorCode::NotFound);
    let seen_at = twice.now;
    twice.ok(MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at,
        to_disk: false,
        stated_at: None,
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
fn a_wipe_that_fails_taints() {
    let failures = [
        (vec![wiped("/dev/vda", Some("I/O error"))], "I/O error"),
        (vec![], "/dev/vda was not wiped"),
        (vec![wiped("/dev/vdb", None)], "/dev/vda was not wiped"),
    ];
    for (disks, reason) in failures {
        let mut world = World::new();
        world.boot(1, "boot-1");
        world.ok(WipeDone { id: id(1), disks });
        let machine = world.machine(1);
        assert_eq!(machine.phase, Phase::Held(HoldCause::Wipe));
        assert_eq!(machine.condition.state, Availability::Tainted);
        assert!(
            machine.condition.description.contains(reason),
            "{:?}",
            machine.condition
        );
        assert!(matches!(world.order(1), MachineOrder::Hold { .. }));
        world.event(1, EventKind::Waiting);
        assert_eq!(
            world.refused(allocation_of(1)),
            ErrorCode::NoMachineAvailable
        );
        let by_id = AllocateMachine {
            machine: Some(id(1)),
            partition: None,
            size: None,
            ..allocation_of(1)
        };
        assert_eq!(world.refused(by_id), ErrorCode::MachineNotReady);

        world.boot(1, "boot-2");
        assert!(
            matches!(world.order(1), MachineOrder::Hold { .. }),
            "rebooting is no way out"
        );
        let state = Availability::Available;
        world.ok(SetMachineState {
            id: id(1),
            state,
            description: String::new(),
        });
        assert_eq!(world.order(1), MachineOrder::Wipe);
        world.wipe(1);
        world.event(1, EventKind::Waiting);
        world.allocate(1);
    }
}

#[test]
fn a_new_disk_makes_a_clean_machine_dirty() {
    let mut world = World::new();
    world.waiting(1);
    world.boot(1, "boot-2");
    assert_eq!(world.phase(1), Phase::Waiting, "same disks: still clean");
    let mut registration = registration(1, "boot-3");
    registration.hardware.disks[0].serial = "another".into();
    world.ok(registration);
    assert_eq!(world.order(1), MachineOrder::Wipe);
}

/// A disk's name says where it is: another one may be in its place after a boot.
#[test]
fn a_disk_without_a_serial_number_is_wiped_at_each_boot() {
    let set = |serials: [&'static str; 2]| {
        move |boot_id: &str| {
            let mut registration = registration(1, boot_id);
            let mut second = registration.hardware.disks[0].clone();
            second.name = "/dev/vdb".into();
            registration.hardware.disks.push(second);
            for (disk, serial) in [0, 2].into_iter().zip(serials) {
                registration.hardware.disks[disk].serial = serial.into();
            }
            registration
        }
    };
    for serials in [["", "disk-2"], ["  ", "disk-2"], ["0000", "0000"]] {
        let mut world = World::new();
        world.boot(1, "boot-1");
        let registered = set(serials);
        let wipe = |world: &mut World| {
            world.ok(WipeDone {
                id: id(1),
                disks: vec![wiped("/dev/vda", None), wiped("/dev/vdb", None)],
            });
            world.event(1, EventKind::Waiting);
        };
        world.ok(registered("boot-1"));
        wipe(&mut world);
        world.ok(registered("boot-1"));
        assert_eq!(world.order(1), MachineOrder::Wait, "the same boot");
        world.ok(registered("boot-2"));
        assert_eq!(world.order(1), MachineOrder::Wipe, "{serials:?}");
        assert_eq!(
            world.refused(allocation_of(1)),
            ErrorCode::NoMachineAvailable
        );
        wipe(&mut world);
        world.allocate(1);
    }
    let mut world = World::new();
    world.boot(1, "boot-1");
    world.ok(set(["a", "b"])("boot-1"));
    world.ok(WipeDone {
        id: id(1),
        disks: vec![wiped("/dev/vda", None), wiped("/dev/vdb", None)],
    });
    world.ok(set(["b", "a"])("boot-2"));
    assert_eq!(
        world.order(1),
        MachineOrder::Wait,
        "known by number, in any order"
    );
}

#[test]
fn a_power_cut_during_the_installation_is_another_attempt() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    for attempt in 1..=INSTALL_ATTEMPTS_MAX {
        let MachineOrder::Install(order) = world.order(1) else {
            panic!("{:?}", world.order(1))
        };
        assert_eq!(order.attempt, attempt);
        world.event(1, EventKind::Installing);
        world.ok(registration(1, &world.machine(1).boot_id.clone()));
        assert!(matches!(world.order(1), MachineOrder::Install(o) if o.attempt == attempt));
        world.boot(1, &format!("again-{attempt}"));
    }
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Install));
    assert!(
        world.machine(1).reason.contains("restarted"),
        "{}",
        world.machine(1).reason
    );
    assert!(matches!(world.order(1), MachineOrder::Hold { .. }));
    assert!(world.log(1).last_error_event.is_some());
    assert_eq!(target(&world), BootTarget::Hammer);

    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert_eq!(world.machine(1).allocation, None);
}

#[test]
fn a_failed_installation_is_tried_again_or_held() {
    // errors as (retryable) → attempts that follow, phase
    let cases: &[(&[bool], Phase, u32)] = &[
        (&[true], Phase::Installing, 2),
        (&[true, true], Phase::Installing, 3),
        (&[true, true, true], Phase::Held(HoldCause::Install), 3),
        (&[false], Phase::Held(HoldCause::Install), 1),
        (&[true, false], Phase::Held(HoldCause::Install), 2),
    ];
    for (errors, phase, attempt) in cases {
        let mut world = World::new();
        world.waiting(1);
        world.allocate(1);
        for retryable in *errors {
            world.event(1, EventKind::Installing);
            world.ok(InstallDone {
                error: Some("digest is wrong".into()),
                step: "image".into(),
                retryable: *retryable,
                ..installed(1, 1)
            });
        }
        let machine = world.machine(1);
        assert_eq!(machine.phase, *phase, "{errors:?}");
        let install = &machine.allocation.as_ref().unwrap().install;
        assert_eq!(install.attempt, *attempt, "{errors:?}");
        assert!(
            machine.reason.contains("image: digest is wrong"),
            "{}",
            machine.reason
        );
        assert_eq!(world.port(1), PROVISIONING);
    }
}

#[test]
fn done_twice_or_for_another_allocation() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    assert_eq!(
        world.refused(installed(1, 9)),
        ErrorCode::MachineNotAllocated
    );
    world.ok(installed(1, 1));
    let orders = world.open_orders();
    world.ok(installed(1, 1));
    assert_eq!(world.open_orders(), orders, "no second order");
}

#[test]
fn a_reboot_does_not_wait_for_a_silent_bmc() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    world.ok(installed(1, 1));
    world.tick(29_000);
    assert_eq!(world.order(1), MachineOrder::Nothing);
    world.tick(1_000);
    assert_eq!(world.order(1), MachineOrder::Reboot);
    assert!(!world.machine(1).reason.is_empty());
    world.tick(60_000);
    assert_eq!(
        world.port(1),
        PROVISIONING,
        "hammer did not say that it left"
    );
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::Running);
    assert_ne!(world.port(1), PROVISIONING);
}

#[test]
fn pxe_before_disk_is_no_crash() {
    let mut world = World::new();
    world.running(1, 1);
    let seen_at = world.now;
    world.ok(MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at,
        to_disk: false,
        stated_at: None,
    });
    assert!(!world.log(1).crash_loop);
    assert_eq!(world.log(1).state, Some(EventKind::PhonedHome));
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
        id: 1,
        peer_address: String::new(),
        mesh_addresses: Vec::new(),
        level: 5,
        version: String::new(),
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
