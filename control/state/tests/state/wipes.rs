//! Wipes of disks: before a machine is on offer, and after a disk was swapped.

use crate::world::*;
use control_state::life::MachineOrder;
use control_state::*;

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
