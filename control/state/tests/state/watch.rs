//! Time, switches, orders, and who may say what about a machine.

use control_state::life::{BootTarget, Fabric, MachineOrder, boot_target};
use control_state::*;
use proto_types::VNI_MAX;

use crate::world::*;

const PROVISIONING: u32 = PROVISIONING_VNI_DEFAULT;

#[test]
fn silence() {
    let mut world = World::new();
    world.running(1, 1);
    world.boot(2, "boot-1");
    world.wipe(2);
    world.event(2, EventKind::Waiting);
    let mut cut_off = world.clone();
    let mut new_leader = world.clone();
    let mut heard = world.clone();

    world.tick(DEAD_AFTER_MS - 5000);
    assert_eq!(world.log(1).liveliness, Liveliness::Alive);
    world.tick(6000);
    assert_eq!(world.log(1).liveliness, Liveliness::Unknown);
    assert_eq!(world.log(2).liveliness, Liveliness::Dead);
    assert_eq!(
        world.refused(allocation_of(2)),
        ErrorCode::NoMachineAvailable
    );
    world.event(2, EventKind::Alive);
    assert_eq!(world.log(2).liveliness, Liveliness::Alive);
    world.allocate(2);

    cut_off.later(10 * DEAD_AFTER_MS);
    cut_off.ok(Tick {
        unobserved: [text(PARTITION)].into(),
        ..Tick::default()
    });
    assert_eq!(
        cut_off.log(2).liveliness,
        Liveliness::Alive,
        "nobody looked"
    );

    new_leader.later(10 * DEAD_AFTER_MS);
    let listening_since = new_leader.now;
    new_leader.ok(Tick {
        listening_since,
        ..Tick::default()
    });
    assert_eq!(
        new_leader.log(2).liveliness,
        Liveliness::Alive,
        "it has just begun to listen"
    );
    new_leader.later(DEAD_AFTER_MS);
    new_leader.ok(Tick {
        listening_since,
        ..Tick::default()
    });
    assert_eq!(new_leader.log(2).liveliness, Liveliness::Dead);

    heard.later(2 * DEAD_AFTER_MS);
    let now = heard.now;
    heard.ok(Tick {
        heard: [(id(2), now)].into(),
        ..Tick::default()
    });
    assert_eq!(heard.log(2).liveliness, Liveliness::Alive);
    assert!(life::event_is_heartbeat(
        &heard.tables,
        id(2),
        EventKind::Alive
    ));
    assert!(
        !life::event_is_heartbeat(&heard.tables, id(1), EventKind::PhonedHome),
        "was unknown"
    );
}

/// A machine on offer, one that a tenant has and one that is being wiped of a tenant: nobody
/// knows how they are, and nobody touches them.
#[test]
fn a_partition_may_be_away_for_an_hour() {
    let mut world = World::new();
    world.running(1, 1);
    world.free(1);
    world.boot(2, "boot-1");
    world.wipe(2);
    world.event(2, EventKind::Waiting);
    let away = || Tick {
        unobserved: [text(PARTITION)].into(),
        ..Tick::default()
    };
    let before = [world.machine(1).clone(), world.machine(2).clone()];
    assert_eq!(world.open_orders(), [BmcAction::PowerOff]);
    for _ in 0..70 {
        world.later(60_000);
        world.ok(away());
    }
    assert_eq!(before, [world.machine(1).clone(), world.machine(2).clone()]);
    assert_eq!(world.log(2).liveliness, Liveliness::Alive);
    assert_eq!(world.open_orders(), [BmcAction::PowerOff]);

    // It is back; one machine speaks, and what was ordered goes on.
    world.event(2, EventKind::Alive);
    world.tick(1000);
    assert_eq!(world.log(2).liveliness, Liveliness::Alive);
    assert_eq!(world.machine(2).phase, before[1].phase);
    assert_eq!(world.machine(1).phase, before[0].phase);
    world.bmc(BmcAction::PowerOff, None);
    assert_ne!(world.machine(1).phase, before[0].phase);
}

#[test]
fn a_machine_that_does_not_come_back_is_rebooted_and_then_held() {
    let mut world = World::new();
    world.running(1, 1);
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerOn, None);
    for _ in 0..STEP_ATTEMPTS_MAX {
        world.tick(16 * 60_000);
        assert_eq!(
            world.open_orders(),
            [BmcAction::BootPxe, BmcAction::PowerCycle]
        );
        world.bmc(BmcAction::BootPxe, None);
        world.bmc(BmcAction::PowerCycle, None);
    }
    world.tick(16 * 60_000);
    assert_eq!(world.phase(1), Phase::Held(HoldCause::Bmc));
    assert_eq!(
        boot_target(&world.tables, id(1)),
        BootTarget::Hammer,
        "it is off or in our segment: let it come"
    );
    world.boot(1, "late");
    assert_eq!(world.order(1), MachineOrder::Wipe);
}

#[test]
fn segments_of_a_switch() {
    let mut world = World::new();
    let exits = [(
        label::EXIT_VTEPS.to_owned(),
        "10.0.0.9, 10.0.0.8".to_owned(),
    )]
    .into();
    world.ok(relabel(LabelsUpdate::Replace(exits)));
    world.running(1, 1);
    let desired = Fabric::of(&world.tables).desired(&text("leaf1")).unwrap();
    assert_eq!(desired.ports.len(), 8);
    let tenant: Vec<_> = desired
        .segments
        .iter()
        .filter(|s| !s.provisioning)
        .collect();
    assert_eq!(tenant.len(), 1);
    assert_eq!(tenant[0].remote_vteps.len(), 2);
    assert!(tenant[0].vni.get() <= VNI_MAX);
    let provisioning = desired.segments.iter().find(|s| s.provisioning).unwrap();
    assert_eq!(provisioning.vni.get(), PROVISIONING);
    assert!(provisioning.remote_vteps.is_empty());

    world.ok(RegisterSwitch {
        id: text("leaf2"),
        partition: text(PARTITION),
        rack: "rack-2".into(),
        room: String::new(),
        management_ip: None,
        vtep_ip: Some("10.0.0.2".parse().unwrap()),
        ports: [("swp1".to_owned(), None)].into(),
        identifiers: Default::default(),
        os_vendor: String::new(),
        os_version: String::new(),
        agent_version: String::new(),
        hears: false,
    });
    let desired = Fabric::of(&world.tables).desired(&text("leaf1")).unwrap();
    let provisioning = desired.segments.iter().find(|s| s.provisioning).unwrap();
    assert_eq!(provisioning.remote_vteps.len(), 1, "leaf2 has a free port");
    assert_eq!(
        Fabric::of(&world.tables)
            .desired(&text("leaf3"))
            .unwrap_err()
            .code,
        ErrorCode::NotFound
    );
}

#[test]
fn a_machine_stays_in_its_partition() {
    let mut world = World::new();
    world.ok(CreatePartition(partition("other")));
    world.waiting(1);
    let seen_at = world.now;
    let seen = MachineSeen {
        id: id(1),
        partition: text("other"),
        mac: Some(mac(1)),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: None,
    };
    assert_eq!(world.refused(seen.clone()), ErrorCode::MachineForeign);
    let nowhere = MachineSeen {
        partition: text("nowhere"),
        ..seen
    };
    assert_eq!(world.refused(nowhere), ErrorCode::NotFound);
}

#[test]
fn phoning_home_needs_the_machine() {
    let mut world = World::new();
    world.waiting(1);
    let time = world.now;
    let call = |project| PhoneHome {
        id: id(1),
        project: id(project),
        message: String::new(),
        time,
    };
    assert_eq!(world.refused(call(1)), ErrorCode::MachineForeign);
    world.allocate(1);
    assert_eq!(world.refused(call(2)), ErrorCode::MachineForeign);
    assert_eq!(world.refused(call(1)), ErrorCode::WrongPhase);
}

#[test]
fn an_old_packet_says_nothing_new() {
    let mut world = World::new();
    let old = world.now;
    world.later(60_000);
    world.waiting(1);
    world.ok(MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at: old,
        to_disk: false,
        stated_at: None,
        relayed: None,
    });
    assert_eq!(world.log(1).state, Some(EventKind::Waiting));
}

#[test]
fn orders_of_users() {
    let mut world = World::new();
    world.running(1, 1);
    let order = |action, project: Option<u128>| OrderBmc {
        user: None,
        machine: id(1),
        project: project.map(id),
        action,
        description: "here".into(),
    };
    assert_eq!(
        world.refused(order(BmcAction::PowerOn, Some(2))),
        ErrorCode::NotFound
    );
    world.ok(order(BmcAction::LedOn, Some(1)));
    world.bmc(BmcAction::LedOn, None);
    assert_eq!(
        world.machine(1).led,
        Led {
            value: "on".into(),
            description: "here".into()
        }
    );
    world.ok(order(BmcAction::PowerCycle, None));
    assert_eq!(world.log(1).state, Some(EventKind::PlannedReboot));
    world.bmc(BmcAction::PowerCycle, Some("no"));
    assert_eq!(world.phase(1), Phase::Running);
    let told = world.log(1).last_error_event.clone().unwrap();
    assert_eq!(told.message, "power-cycle failed: no");
    world.phone_home(1);
    assert_eq!(world.log(1).state, Some(EventKind::PhonedHome));
    for _ in 0..ORDERS_OPEN_MAX {
        world.ok(order(BmcAction::PowerOn, None));
    }
    assert_eq!(
        world.refused(order(BmcAction::PowerOn, None)),
        ErrorCode::TooMany
    );
    world.free(1);
    assert_eq!(world.open_orders(), [BmcAction::PowerOff], "overtaken");
    assert_eq!(
        world.refused(order(BmcAction::PowerOn, None)),
        ErrorCode::WrongPhase
    );
    let kept = life::machine_orders(&world.tables, id(1)).count();
    assert!(kept <= ORDERS_KEPT_MAX + 1, "{kept}");
}

#[test]
fn a_switch_may_register_after_its_machines() {
    let mut world = World::new();
    world.ok(DeleteSwitch {
        id: text("leaf1"),
        force: false,
    });
    world.waiting(1);
    assert!(world.machine(1).links.is_empty());
    world.ok(leaf("other-leaf", "rack-9"));
    assert_eq!(
        world.refused(allocation_of(1)),
        ErrorCode::NoMachineAvailable
    );
    assert!(
        query::machine_obstacle(&world.tables, id(1))
            .unwrap()
            .contains("LLDP")
    );
    world.ok(leaf("leaf1", "rack-1"));
    world.hear("leaf1", "swp1", &[mac(1)]);
    assert_eq!(
        (world.machine(1).links.len(), world.machine(1).rack.as_str()),
        (1, "rack-1")
    );
    world.allocate(1);
}

#[test]
fn a_cable_has_one_machine() {
    let mut world = World::new();
    world.waiting(1);
    let mut moved = registration(2, "boot-1");
    moved.hardware.nics[0].neighbours[0].port_id = "swp1".into();
    world.boot(2, "boot-0");
    world.hear("leaf1", "swp1", &[mac(2)]);
    world.ok(moved);
    assert!(world.machine(1).links.is_empty(), "unplugged");
    assert_eq!(world.machine(2).links[0].port, "swp1");
}

#[test]
fn provisioning_segments_are_no_tenants() {
    let mut world = World::new();
    let vrf = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();
    let mut clash = partition("p-2");
    clash
        .meta
        .labels
        .insert(label::PROVISIONING_VNI.into(), vrf.to_string());
    assert_eq!(
        world.refused(CreatePartition(clash)),
        ErrorCode::InvalidField
    );
}
