//! Which of a project's firewalls is active, as their agents' reports and signs of life decide.

use control_state::life::{MachineOrder, firewall_desired};
use control_state::*;

use crate::world::*;

fn world() -> World {
    firewalls(2)
}

/// So many firewalls of project 1 that run between the same networks. Each is a minute older than the
/// next one.
pub(crate) fn firewalls(count: u128) -> World {
    let mut world = World::new();
    let names = world.with_firewall_networks();
    for number in 1..=count {
        add_firewall(&mut world, names, number);
    }
    world
}

/// A firewall of project 1 between two networks, which runs a minute later.
pub(crate) fn add_firewall(world: &mut World, networks: [&str; 2], number: u128) {
    world.waiting(number);
    let networks = networks.map(|name| WantedNetwork {
        network: text(name),
        ips: vec![],
    });
    world.ok(AllocateMachine {
        machine: Some(id(number)),
        partition: None,
        size: None,
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: networks.to_vec(),
        ..allocation_of(number)
    });
    world.install(number, number);
    world.phone_home(number);
    assert_eq!(world.phase(number), Phase::Running);
    world.later(60_000);
}

/// A report of a firewall whose allocation has its number.
pub(crate) fn report(number: u128, applied: u64, error: Option<&str>) -> ReportFirewall {
    ReportFirewall {
        machine: id(number),
        allocation: id(number),
        applied_term: 1,
        applied_generation: applied,
        applied_sets: [].into(),
        refused_rules: vec![],
        error: error.map(str::to_owned),
        agent_version: Some("1.0.0".into()),
        routes: None,
        update: None,
    }
}

fn distances(world: &World) -> [u32; 2] {
    [1, 2].map(|number| distance(world, number))
}

/// The distance that a firewall is told.
pub(crate) fn distance(world: &World, number: u128) -> u32 {
    let desired = firewall_desired(&world.tables, id(number)).unwrap();
    assert_eq!(
        desired.asn,
        world.machine(number).allocation.as_ref().unwrap().asn
    );
    desired.distance
}

#[test]
fn the_oldest_firewall_with_its_rules_in_force_is_active() {
    let mut world = world();
    assert_eq!(distances(&world), [0, 1], "none has its rules yet");
    world.ok(report(2, 7, None));
    assert_eq!(distances(&world), [1, 0]);
    world.ok(report(1, 7, None));
    assert_eq!(distances(&world), [0, 1], "the older one takes over");
    world.ok(report(1, 7, Some("a probe failed")));
    assert_eq!(distances(&world), [1, 0]);
    world.ok(report(1, 8, None));
    assert_eq!(distances(&world), [0, 1]);
}

#[test]
fn a_firewall_that_is_silent_or_freed_is_not_active() {
    let mut world = world();
    world.ok(report(1, 7, None));
    world.ok(report(2, 7, None));
    assert_eq!(distances(&world), [0, 1]);
    let mut silent = world.clone();
    silent.tick(DEAD_AFTER_MS);
    assert_eq!(distances(&silent), [0, 1], "both are silent");
    silent.phone_home(2);
    assert_eq!(silent.log(1).liveliness, Liveliness::Unknown);
    assert_eq!(distances(&silent), [1, 0]);
    world.free(1);
    assert_eq!(distances(&world), [query::DISTANCE_MAX, 0]);
}

#[test]
fn a_firewalls_order_has_the_files_that_control_makes() {
    let mut world = World::new();
    let names = world.with_firewall_networks();
    world.waiting(1);
    let networks = names.map(|name| WantedNetwork {
        network: text(name),
        ips: vec![],
    });
    world.ok(AllocateMachine {
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        hostname: Some("fw-1".into()),
        networks: networks.to_vec(),
        ..allocation_of(1)
    });
    let MachineOrder::Install(order) = world.order(1) else {
        panic!("no installation");
    };
    assert_eq!(order.kind, AllocationType::Firewall);
    let [made] = order.userdata_contents.as_slice() else {
        panic!("{:?}", order.userdata_contents);
    };
    assert_eq!(made.path, "/etc/firewall-controller/config.yaml");
    let project = order.project;
    let underlay = order.networks.iter();
    let underlay = underlay.filter(|network| network.kind == NetworkType::Underlay);
    let underlay: Vec<_> = underlay.flat_map(|network| &network.prefixes).collect();
    let [underlay] = underlay.as_slice() else {
        panic!("{underlay:?}");
    };
    assert_eq!(
        made.content,
        format!(
            "# Made by control at the installation.\nname: \"fw-1\"\nsources:\n  metal:\n    \
             projectID: \"{project}\"\ncontrollers:\n  firewall:\n    source: metal\n    \
             selfUpdate:\n      enabled: true\n      localPrefixes: [\"{underlay}\"]\n  cwnp:\n    \
             source: metal\n  service:\n    source: metal\n"
        )
    );
    world.waiting(2);
    world.allocate(2);
    let MachineOrder::Install(order) = world.order(2) else {
        panic!("no installation");
    };
    assert!(order.userdata_contents.is_empty());
}
