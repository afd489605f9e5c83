//! Switches in each other's place, and what their ports let through.

use control_state::life::bgp_filter;
use control_state::*;
use proto_types::{MacAddr, SwitchId};

use crate::world::*;

/// A machine that hangs at two leaves, the same port of both.
fn at_two(world: &mut World, number: u128) {
    world.waiting(number);
    let mut again = registration(number, "boot-1");
    let mut second = again.hardware.nics[0].clone();
    second.name = "eth1".into();
    second.mac = second_card(number);
    second.neighbours[0].system_name = "leaf2".into();
    again.hardware.nics.push(second);
    world.hear("leaf2", &format!("swp{number}"), &[second_card(number)]);
    world.ok(again);
}

fn second_card(number: u128) -> MacAddr {
    let MacAddr(mut bytes) = mac(number);
    bytes[0] = 0x06;
    MacAddr(bytes)
}

fn links(world: &World, number: u128) -> Vec<(String, String)> {
    let links = world.machine(number).links.iter();
    links
        .map(|link| (link.switch.to_string(), link.port.clone()))
        .collect()
}

fn mode(world: &mut World, id: &str, mode: ReplaceMode) {
    world.ok(UpdateSwitch {
        id: text(id),
        lock: Lock::Server,
        description: None,
        replace_mode: Some(mode),
        management_ip: None,
        management_user: None,
        console_command: None,
        labels: None,
    });
}

fn pair(switch: &str, port: &str) -> (String, String) {
    (switch.to_owned(), port.to_owned())
}

#[test]
fn a_replaced_switch_is_set_up_by_its_twin() {
    let mut world = World::new();
    world.ok(leaf("leaf2", "rack-1"));
    at_two(&mut world, 1);
    assert_eq!(
        links(&world, 1),
        [pair("leaf1", "swp1"), pair("leaf2", "swp1")]
    );
    // It broke, was taken out, and its name is given to a new one.
    world.ok(DeleteSwitch {
        id: text("leaf2"),
        force: true,
    });
    world.ok(RegisterSwitch {
        ports: [].into(),
        ..leaf("leaf2", "rack-1")
    });
    let mut alone = registration(1, "boot-1");
    alone.hardware.nics.push(Nic {
        mac: second_card(1),
        neighbours: vec![],
        ..alone.hardware.nics[0].clone()
    });
    world.ok(alone);
    assert_eq!(links(&world, 1), [pair("leaf1", "swp1")]);
    world.ok(SetSwitchPort {
        id: text("leaf1"),
        port: "swp2".into(),
        admin_up: false,
    });
    mode(&mut world, "leaf2", ReplaceMode::Replace);
    world.ok(leaf("leaf2", "rack-1"));
    assert_eq!(
        links(&world, 1),
        [pair("leaf1", "swp1"), pair("leaf2", "swp1")]
    );
    assert_eq!(world.machine(1).links[1].mac, second_card(1));
    let id: SwitchId = text("leaf2");
    let replaced = world.tables.get::<Switch>(&id).unwrap();
    assert!(!replaced.ports["swp2"].admin_up, "as at the twin");
    assert_eq!(replaced.replace_mode, ReplaceMode::Operational);
}

#[test]
fn a_replacement_needs_exactly_one_twin_in_the_same_rack() {
    let mut world = World::new();
    mode(&mut world, "leaf1", ReplaceMode::Replace);
    assert_eq!(
        world.refused(leaf("leaf1", "rack-1")),
        ErrorCode::SwitchesDiffer
    );
    world.ok(leaf("leaf2", "rack-1"));
    assert_eq!(
        world.refused(leaf("leaf1", "rack-2")),
        ErrorCode::SwitchesDiffer
    );
    world.ok(leaf("leaf3", "rack-1"));
    assert_eq!(
        world.refused(leaf("leaf1", "rack-1")),
        ErrorCode::SwitchesDiffer
    );
    mode(&mut world, "leaf1", ReplaceMode::Operational);
    world.ok(leaf("leaf1", "rack-1"));
}

#[test]
fn cables_move_to_the_same_ports_of_another_switch() {
    let mut world = World::new();
    world.running(1, 1);
    let tenant = world.port(1);
    world.ok(SetSwitchPort {
        id: text("leaf1"),
        port: "swp1".into(),
        admin_up: false,
    });
    let to = |to: &str| MigrateSwitch {
        from: text("leaf1"),
        to: text(to),
    };
    world.ok(leaf("other", "rack-9"));
    world.ok(RegisterSwitch {
        ports: [("swp7".to_owned(), None)].into(),
        ..leaf("small", "rack-1")
    });
    assert_eq!(world.refused(to("leaf1")), ErrorCode::InvalidField);
    assert_eq!(world.refused(to("other")), ErrorCode::SwitchesDiffer);
    assert_eq!(world.refused(to("small")), ErrorCode::SwitchesDiffer);
    assert_eq!(world.refused(to("nowhere")), ErrorCode::NotFound);
    world.ok(leaf("leaf2", "rack-1"));
    world.ok(to("leaf2"));
    assert_eq!(links(&world, 1), [pair("leaf2", "swp1")]);
    let desired = life::Fabric::of(&world.tables)
        .desired(&text("leaf2"))
        .unwrap();
    let port = desired
        .ports
        .iter()
        .find(|port| port.name == "swp1")
        .unwrap();
    assert_eq!((port.vni.get(), port.admin_up), (tenant, false));
    // The old one's agent starts once more: what the machine heard long ago counts no more.
    world.ok(leaf("leaf1", "rack-1"));
    assert_eq!(links(&world, 1), [pair("leaf2", "swp1")]);
    world.waiting(2);
    assert_eq!(world.refused(to("leaf2")), ErrorCode::SwitchesDiffer);
}

#[test]
fn what_a_machine_may_announce() {
    let mut world = World::new();
    world.ok(CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["192.0.2.0/24".parse().unwrap()],
        destination_prefixes: vec!["0.0.0.0/0".parse().unwrap()],
        default_child_length: ChildLength::default(),
        partition: None,
        vrf: Some(4711),
        ..network("internet")
    });
    world.ok(ip(1, "internet", 1));
    world.ok(ip(2, "private", 1));
    world.waiting(1);
    world.allocate(1);
    assert_eq!(
        bgp_filter(&world.tables, world.machine(1)),
        None,
        "hammer announces nothing"
    );
    world.install(1, 1);
    let filter = bgp_filter(&world.tables, world.machine(1)).unwrap();
    let cidrs: Vec<_> = filter.cidrs.iter().map(ToString::to_string).collect();
    assert_eq!(cidrs, ["10.128.0.0/22", "192.0.2.1/32"]);
    assert!(filter.vnis.is_empty());
}

#[test]
fn counters_of_sessions_alone_are_no_news() {
    let mut world = World::new();
    let report = |sent, state| ReportSwitch {
        id: text("leaf1"),
        applied_term: 0,
        applied_generation: 0,
        duration_ms: 1,
        error: None,
        ports: [(
            "swp1".to_owned(),
            PortObserved {
                bgp: Some(BgpSession {
                    state,
                    sent_prefixes: sent,
                    ..BgpSession::default()
                }),
                ..PortObserved::default()
            },
        )]
        .into(),
        health: None,
    };
    world.ok(report(1, 6));
    assert!(!life::switch_report_matters(&world.tables, &report(2, 6)));
    assert!(life::switch_report_matters(&world.tables, &report(2, 1)));
}

#[test]
fn a_report_of_an_unregistered_port_is_no_news() {
    let mut world = World::new();
    let report = |port: &str| ReportSwitch {
        id: text("leaf1"),
        applied_term: 0,
        applied_generation: 0,
        duration_ms: 1,
        error: None,
        ports: [(port.to_owned(), PortObserved::default())].into(),
        health: None,
    };
    world.ok(report("nowhere"));
    let matters = |world: &World, port| life::switch_report_matters(&world.tables, &report(port));
    assert!(!matters(&world, "nowhere"));
    assert!(matters(&world, "swp1"), "a registered port's first report");
}

#[test]
fn how_a_bmc_lets_in_is_kept_and_not_shown() {
    let mut world = World::new();
    world.waiting(1);
    let keep = |machine| KeepBmcAccess {
        machine: id(machine),
        access: BmcAccess {
            user: "metal".into(),
            sealed_password: b"sealed".to_vec(),
        },
    };
    world.ok(keep(1));
    let kept = world.machine(1).bmc_access.clone().unwrap();
    assert_eq!(kept.user, "metal");
    assert!(!format!("{kept:?}").contains("115"), "{kept:?}");
    assert_eq!(world.refused(keep(2)), ErrorCode::NotFound);
    let seen = MachineSeen {
        id: id(9),
        partition: text(PARTITION),
        mac: None,
        seen_at: world.now,
        to_disk: false,
        stated_at: None,
        relayed: None,
    };
    world.ok(seen);
    assert!(world.machine(9).boot_macs.is_empty());
}

#[test]
fn orders_are_cancelled_and_forgotten() {
    let mut world = World::new();
    world.running(1, 1);
    let order = world.ok(OrderBmc {
        user: None,
        machine: id(1),
        project: None,
        action: BmcAction::LedOn,
        description: String::new(),
    });
    let order = order.bmc_order().unwrap().id;
    let delete = || DeleteBmcOrder { id: order };
    world.ok(delete());
    let state = |world: &World| {
        world
            .tables
            .get::<BmcOrder>(&order)
            .map(|order| order.state)
    };
    assert_eq!(state(&world), Some(OrderState::Cancelled));
    world.ok(delete());
    assert_eq!(state(&world), None);
    assert_eq!(world.refused(delete()), ErrorCode::NotFound);
    world.free(1);
    let open = life::bmc_desired(&world.tables, &text(PARTITION));
    let life = DeleteBmcOrder { id: open[0].id };
    assert_eq!(world.refused(life), ErrorCode::StillInUse);
}

#[test]
fn one_name_in_two_cases_is_one_switch() {
    let mut world = World::new();
    assert_eq!(
        world.refused(leaf("Leaf1", "rack-1")),
        ErrorCode::AlreadyExists
    );
    world.ok(leaf("leaf1", "rack-1"));
}

#[test]
fn a_partition_has_at_most_1000_switches() {
    let mut world = World::new();
    let before = world.tables.all::<Switch>().count();
    for number in before..1_000 {
        let op = leaf(&format!("spine{number}"), "rack-1");
        // Without the proofs of `World::ok`, each of which looks at every switch.
        let command = Command::new(world.now, "tester", op);
        apply(&mut world.tables, &command).result.unwrap();
    }
    let mut take = |op: Op| {
        let command = Command::new(world.now, "tester", op);
        apply(&mut world.tables, &command).result
    };
    let further = take(leaf("one-more", "rack-1").into()).unwrap_err();
    assert_eq!(further.code, ErrorCode::TooMany);
    take(leaf("leaf1", "rack-1").into()).unwrap();
    let delete = DeleteSwitch {
        id: text("spine999"),
        force: false,
    };
    take(delete.into()).unwrap();
    take(leaf("one-more", "rack-1").into()).unwrap();
}
