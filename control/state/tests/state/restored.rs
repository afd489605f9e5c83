//! A restored state is not judged until an operator has reconciled it.

use control_state::*;
use proto_types::Timestamp;

use crate::world::*;

const HOUR_MS: u64 = 3_600_000;

/// The world as a restore makes it out of a backup of this moment.
pub(crate) fn restored(world: &World) -> World {
    let mut tables = world.tables.clone();
    let clock = tables.get::<ClusterClock>(&ClusterClock::ONE.to_owned());
    let clock = ClusterClock {
        restored: Some(Restored {
            made_at: world.now,
            revision: tables.revision(),
        }),
        ..clock.map_or_else(
            || ClusterClock::at(world.now),
            |clock| ClusterClock::clone(clock),
        )
    };
    let revision = tables.revision();
    let record = Record::ClusterClock(std::sync::Arc::new(clock));
    let bytes = record.encode().unwrap();
    tables.load(record.kind(), &bytes, revision).unwrap();
    World::of(tables, world.now)
}

fn reconcile(judge_silent: bool) -> ReconcileRestore {
    ReconcileRestore { judge_silent }
}

/// Machine 1 waits, 2 is a tenant's, 3 is being wiped, 4 is on its way back from a tenant.
fn data_centre() -> World {
    let mut world = World::new();
    world.ok(Tick::default());
    world.waiting(1);
    world.running(2, 2);
    world.boot(3, "boot-1");
    world.running(4, 4);
    world.free(4);
    world
}

fn phases(world: &World) -> Vec<(Phase, Liveliness)> {
    let phase = |number| (world.phase(number), world.log(number).liveliness);
    [1, 2, 3, 4].into_iter().map(phase).collect()
}

#[test]
fn nothing_is_judged_before_it_is_reconciled() {
    let before = data_centre();
    let mut world = restored(&before);
    assert_eq!(before.open_orders(), [BmcAction::PowerOff]);
    assert_eq!(world.open_orders(), [], "ordered before the backup");
    assert_eq!(before.order(3), life::MachineOrder::Wipe);
    let held = |order| matches!(order, life::MachineOrder::Hold { .. });
    assert!(held(world.order(3)));
    let known = phases(&world);
    for _ in 0..100 {
        world.tick(HOUR_MS / 2);
        assert_eq!(phases(&world), known);
        assert_eq!(world.open_orders(), []);
    }
    let free = query::machine_obstacle(&world.tables, id(1)).unwrap();
    assert!(free.contains("restored"), "{free}");
    assert_eq!(world.refused(allocation_of(7)), ErrorCode::NotReconciled);
    // The same without a restore.
    let mut judged = before;
    for _ in 0..4 {
        judged.tick(HOUR_MS / 2);
    }
    assert_ne!(phases(&judged), known);
}

#[test]
fn no_installer_boots_before_it_is_reconciled() {
    let mut world = restored(&data_centre());
    world.later(10_000);
    let target = |world: &World, number| life::boot_target(&world.tables, id(number));
    let none = life::BootTarget::None;
    assert_eq!(target(&world, 9), none, "a machine that the backup lacks");
    // A free machine of the backup that boots may be a tenant's by now.
    for number in [1, 3] {
        world.seen(number);
        assert_eq!(target(&world, number), none);
        let phase = world.phase(number);
        assert!(matches!(phase, Phase::Waiting | Phase::Wiping), "{phase}");
    }
    assert_eq!(target(&world, 2), life::BootTarget::Disk);
    let targets = life::boot_desired(&world.tables, &text(PARTITION));
    assert!(
        targets
            .iter()
            .all(|boot| boot.target != life::BootTarget::Hammer)
    );
    let token = CreateMachineToken {
        machine: id(1),
        token: crate::boots::token(&world, 1, 1),
    };
    assert_eq!(world.refused(token), ErrorCode::NotReconciled);
}

/// What the machines speak with is what the backup knows.
fn heard(world: &mut World, numbers: &[u128]) {
    let heard = numbers.iter().map(|number| (id(*number), world.now));
    let heard = heard.collect();
    world.ok(Tick {
        heard,
        ..Tick::default()
    });
}

fn proven(world: &World) -> Vec<bool> {
    let made_at = life::restored(&world.tables).unwrap().made_at;
    let machines = life::restored_machines(&world.tables, made_at);
    machines.map(|found| found.is_proven).collect()
}

#[test]
fn what_others_say_proves_nothing() {
    let mut world = restored(&data_centre());
    world.later(10_000);
    // A switch agent or a boot server may say all of this of a tenant's machine.
    world.event(3, EventKind::Alive);
    world.seen(1);
    world.seen(4);
    assert_eq!(proven(&world), [false; 4]);
    let made_at = life::restored(&world.tables).unwrap().made_at;
    let observed: Vec<bool> = life::restored_machines(&world.tables, made_at)
        .map(|found| found.is_observed)
        .collect();
    assert_eq!(observed, [true, false, true, true]);
    heard(&mut world, &[1, 3]);
    assert_eq!(proven(&world), [true, false, true, false]);
    // A tenant's machine without an agent of ours is known by its ports.
    world.switch_obeys();
    assert_eq!(proven(&world), [true, true, true, false]);
}

#[test]
fn what_nothing_proves_is_locked_and_left_alone() {
    for judge_silent in [false, true] {
        let mut world = restored(&data_centre());
        world.tick(50 * HOUR_MS);
        world.switch_obeys();
        heard(&mut world, &[3]);
        let clock = world.ok(reconcile(judge_silent)).cluster_clock().unwrap();
        assert_eq!(
            (clock.restored.as_ref(), clock.reconciled_at),
            (None, Some(world.now))
        );
        assert_eq!(world.refused(reconcile(false)), ErrorCode::NotRestored);
        let locked: Vec<bool> = [1, 2, 3, 4]
            .map(|number| world.machine(number).condition.state == Availability::Locked)
            .to_vec();
        let wanted = match judge_silent {
            true => [false; 4],
            false => [true, false, false, true],
        };
        assert_eq!(locked, wanted);
        assert_eq!(world.order(3), life::MachineOrder::Wipe, "it was heard");
        let power_off: &[BmcAction] = match judge_silent {
            true => &[BmcAction::PowerOff],
            false => &[],
        };
        assert_eq!(
            world.open_orders(),
            power_off,
            "a reclaim goes on unless it is locked"
        );
        // Silence counts from now on, not from the backup.
        world.tick(1_000);
        assert_eq!(world.log(1).liveliness, Liveliness::Alive);
        for _ in 0..3 {
            world.tick(HOUR_MS / 2);
        }
        assert_eq!(world.log(1).liveliness, Liveliness::Dead);
        let rebooted = world.machine(1).step_attempts > 0;
        assert_eq!(rebooted, judge_silent, "a locked machine is left alone");
        let reclaimed = world.phase(4) != Phase::ReclaimPowerOff;
        assert_eq!(reclaimed, judge_silent, "a locked machine is left alone");
    }
}

fn order_of(machine: u128, action: BmcAction) -> OrderBmc {
    OrderBmc {
        user: None,
        machine: id(machine),
        project: None,
        action,
        description: String::new(),
    }
}

#[test]
fn nobody_powers_a_machine_before_it_is_reconciled() {
    let mut world = restored(&data_centre());
    let cycle = || order_of(2, BmcAction::PowerCycle);
    assert_eq!(world.refused(cycle()), ErrorCode::NotReconciled);
    world.ok(order_of(1, BmcAction::LedOn));
    world.ok(reconcile(true));
    world.ok(cycle());
}

#[test]
fn an_order_waits_while_its_machine_is_locked() {
    let mut world = World::new();
    world.running(1, 1);
    world.ok(order_of(1, BmcAction::PowerCycle));
    assert_eq!(world.open_orders(), [BmcAction::PowerCycle]);
    world.ok(SetMachineState {
        id: id(1),
        state: Availability::Locked,
        description: "in repair".into(),
    });
    assert_eq!(world.open_orders(), []);
}

#[test]
fn a_locked_machine_is_not_wiped() {
    let mut world = World::new();
    world.boot(1, "boot-1");
    assert_eq!(world.order(1), life::MachineOrder::Wipe);
    let state = |state, description: &str| SetMachineState {
        id: id(1),
        state,
        description: description.into(),
    };
    world.ok(state(Availability::Locked, "look at it first"));
    let reason = "locked: look at it first".to_owned();
    assert_eq!(world.order(1), life::MachineOrder::Hold { reason });
    let target = life::boot_target(&world.tables, id(1));
    assert_eq!(
        target,
        life::BootTarget::None,
        "a published hammer wipes as it boots"
    );
    world.ok(state(Availability::Available, ""));
    assert_eq!(world.order(1), life::MachineOrder::Wipe);
    let target = life::boot_target(&world.tables, id(1));
    assert_eq!(target, life::BootTarget::Hammer);
}

/// What leaf1 reports of a port.
fn reports(world: &mut World, port: &str, vni: u32) {
    let mut report = world.hearing("leaf1", port, vec![]).unwrap();
    for seen in report.ports.values_mut() {
        seen.vni = vni.try_into().unwrap();
    }
    world.ok(report);
}

#[test]
fn ports_stay_where_they_are_seen() {
    const OTHERS: u32 = 4711;
    let before = data_centre();
    let (provisioning, tenants) = (before.port(1), before.port(2));
    let mut world = restored(&before);
    world.later(10_000);
    assert_eq!(
        world.refused(reconcile(false)),
        ErrorCode::NotReconciled,
        "leaf1 is silent"
    );
    // Since the backup: 1 was given to somebody, 2 to somebody else, and a machine that the backup
    // lacks hangs at port 5.
    for port in ["swp1", "swp2", "swp5"] {
        reports(&mut world, port, OTHERS);
    }
    reports(&mut world, "swp3", provisioning);
    heard(&mut world, &[3]);
    let made_at = life::restored(&world.tables).unwrap().made_at;
    let kept: Vec<(String, u32)> = life::kept_ports(&world.tables, made_at)
        .iter()
        .filter(|port| port.known != port.kept)
        .map(|port| (port.port.to_owned(), port.kept.get()))
        .collect();
    let at = |port: &str| (port.to_owned(), OTHERS);
    let isolated = ("swp4".to_owned(), 0);
    assert_eq!(kept, [at("swp1"), at("swp2"), isolated, at("swp5")]);
    world.ok(reconcile(false));
    let ports = |world: &World| [1, 2, 3, 5].map(|number| world.port(number));
    assert_eq!(ports(&world), [OTHERS, OTHERS, provisioning, OTHERS]);
    world.tick(HOUR_MS / 2);
    assert_eq!(ports(&world), [OTHERS, OTHERS, provisioning, OTHERS]);
    // An operator says what they are.
    for number in [1, 2] {
        world.ok(SetMachineState {
            id: id(number),
            state: Availability::Available,
            description: String::new(),
        });
    }
    world.ok(SetSwitchPort {
        id: text("leaf1"),
        port: "swp5".into(),
        admin_up: true,
    });
    assert_eq!(
        ports(&world),
        [provisioning, tenants, provisioning, provisioning]
    );
}

#[test]
fn ports_of_agents_that_tell_no_segment_are_isolated_for_free_machines() {
    let mut before = data_centre();
    before.ok(RegisterSwitch {
        hears: false,
        ..leaf("leaf1", "rack-1")
    });
    let tenants = before.port(2);
    let mut world = restored(&before);
    world.later(10_000);
    world.ok(reconcile(false));
    assert_eq!([1, 2].map(|number| world.port(number)), [0, tenants]);
}

#[test]
fn only_a_restored_state_is_reconciled() {
    let mut world = World::new();
    world.ok(Tick::default());
    assert_eq!(world.refused(reconcile(false)), ErrorCode::NotRestored);
    // Neither ticks nor an accepted time end the hold.
    let mut world = restored(&world);
    world.later(30 * HOUR_MS);
    world.ok(Tick::default());
    world.ok(AcceptTime { time: world.now });
    world.ok(Tick::default());
    assert!(life::restored(&world.tables).is_some());
    assert!(life::restored(&Tables::new()).is_none());
    assert_ne!(world.now, Timestamp::ZERO);
}

/// An agent that registers without a port for a moment must not move it by that.
#[test]
fn a_port_that_a_registration_leaves_out_keeps_its_pin() {
    const OTHERS: u32 = 4711;
    let mut world = restored(&data_centre());
    world.ok(tests_support::announcement(1));
    world.later(10_000);
    reports(&mut world, "swp1", OTHERS);
    reports(&mut world, "swp2", OTHERS);
    heard(&mut world, &[3]);
    world.ok(reconcile(false));
    let left_out = || RegisterSwitch {
        ports: [("swp3".to_owned(), None)].into(),
        ..leaf("leaf1", "rack-1")
    };
    for _ in 0..2 {
        world.ok(left_out());
    }
    // While it is left out, an operator says what the machine is.
    world.ok(SetMachineState {
        id: id(2),
        state: Availability::Available,
        description: String::new(),
    });
    world.ok(leaf("leaf1", "rack-1"));
    assert_eq!(world.port(1), OTHERS);
    assert_ne!(world.port(2), OTHERS, "vouched for");
}

/// BMC agents refuse orders of an earlier binding than they have had, and a backup, like a machine that
/// was forgotten, counts the bindings from an earlier one on.
#[test]
fn epochs_belong_to_a_later_count_after_a_restore_and_when_a_machine_is_forgotten() {
    let mut world = data_centre();
    let era = |world: &World| life::epoch_era(&world.tables, id(1));
    let first = era(&world);
    world.later(HOUR_MS);
    assert_eq!(era(&world), first, "it does not change by itself");
    let mut backup = restored(&world);
    let while_held = era(&backup);
    assert!(while_held > first);
    backup.later(1_000);
    backup.ok(reconcile(true));
    assert!(era(&backup) > while_held);
    // Seen again after its record was deleted.
    let mut again = World::new();
    again.seen(9);
    let known = life::epoch_era(&again.tables, id(9));
    again.tick(DEAD_AFTER_MS + 1_000);
    again.ok(DeleteMachine { id: id(9) });
    assert_eq!(life::epoch_era(&again.tables, id(9)), 1);
    again.seen(9);
    assert!(life::epoch_era(&again.tables, id(9)) > known);
}
