//! The desired state of leaves in a partition whose switches speak EVPN.
//!
//! `World` holds each incremental desired state against one made of the tables alone.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::cables::{card, claiming, offers};
use crate::world::*;
use control_state::life::{Fabric, PortIntent, PortPlacement, SwitchDesired};
use control_state::*;
use proptest::prelude::*;
use proto_types::{MacAddr, Vni};

fn mode(world: &mut World, mode: &str) {
    let labels = [(label::FABRIC.to_owned(), mode.to_owned())].into();
    world.ok(relabel(LabelsUpdate::Replace(labels)));
}

/// Two leaves of a rack, two projects with a network each, and the internet.
fn rack() -> World {
    let mut world = World::new();
    world.ok(RegisterSwitch {
        vtep_ip: Some("10.0.0.2".parse().unwrap()),
        ..leaf("leaf2", "rack-1")
    });
    world.ok(child("private2", 2));
    world.with_firewall_networks();
    mode(&mut world, "evpn");
    world
}

/// A machine on the same port of both leaves.
fn dual_homed(world: &mut World, number: u128) {
    let port = format!("swp{number}");
    world.hear("leaf1", &port, &[mac(number)]);
    world.hear("leaf2", &port, &[card(number, 1)]);
    offers(
        world,
        claiming(number, &[("leaf1", &port), ("leaf2", &port)]),
    );
}

fn allocation(number: u128, project: u128, networks: &[&str]) -> AllocateMachine {
    let wanted = |name: &&str| WantedNetwork {
        network: text(name),
        ips: vec![],
    };
    AllocateMachine {
        machine: Some(id(number)),
        partition: None,
        size: None,
        project: id(project),
        networks: networks.iter().map(wanted).collect(),
        ..allocation_of(100 + number)
    }
}

fn runs(world: &mut World, allocation: AllocateMachine) {
    let number = allocation.machine.unwrap().uuid().as_u128();
    let project = allocation.project;
    let of = allocation.id.uuid().as_u128();
    world.ok(allocation);
    world.install(number, of);
    world.ok(PhoneHome {
        id: id(number),
        project,
        message: String::new(),
        time: world.now,
    });
}

fn desired(world: &World, leaf: &str) -> SwitchDesired {
    Fabric::of(&world.tables).desired(&text(leaf)).unwrap()
}

fn port(world: &World, leaf: &str, number: u128) -> PortIntent {
    let ports = desired(world, leaf).ports;
    let name = format!("swp{number}");
    ports.into_iter().find(|port| port.name == name).unwrap()
}

fn imports(port: &PortIntent) -> Vec<String> {
    let session = port.session.as_ref().unwrap();
    session.imports.iter().map(ToString::to_string).collect()
}

fn vrf(world: &World, network: &str) -> u32 {
    let network = world.tables.get::<Network>(&text(network)).unwrap();
    network.vrf.unwrap()
}

#[test]
fn a_tenants_ports_are_routed_in_its_vrf_on_both_leaves() {
    let mut world = rack();
    dual_homed(&mut world, 1);
    for leaf in ["leaf1", "leaf2"] {
        let free = port(&world, leaf, 1);
        assert_eq!(free.place, PortPlacement::PrivateSegment);
        assert_eq!(free.session, None);
        assert!(desired(&world, leaf).vrfs.is_empty());
    }
    runs(&mut world, allocation(1, 1, &["private"]));
    let number = vrf(&world, "private");
    for leaf in ["leaf1", "leaf2"] {
        let mine = port(&world, leaf, 1);
        assert_eq!(
            (mine.place, mine.vni.get()),
            (PortPlacement::Routed, number)
        );
        let session = mine.session.as_ref().unwrap();
        assert_eq!(
            session.asn,
            world.machine(1).allocation.as_ref().unwrap().asn
        );
        assert!(session.vnis.is_empty());
        let state = desired(&world, leaf);
        let vrfs: Vec<_> = state.vrfs.iter().map(|vrf| vrf.name()).collect();
        assert_eq!(vrfs, [format!("Vrf{number}")]);
        assert_eq!(state.segments.len(), 1, "provisioning alone is L2");
        assert!(state.segments.iter().all(|s| s.remote_vteps.is_empty()));
    }
    world.free(1);
    let first = world.open_orders()[0];
    world.bmc(first, None);
    for leaf in ["leaf1", "leaf2"] {
        let freed = port(&world, leaf, 1);
        assert_eq!(freed.place, PortPlacement::PrivateSegment, "it is off");
        assert_eq!(freed.session, None);
    }
}

#[test]
fn a_static_partition_is_as_before() {
    let mut world = rack();
    mode(&mut world, "static");
    dual_homed(&mut world, 1);
    runs(&mut world, allocation(1, 1, &["private"]));
    let state = desired(&world, "leaf1");
    assert_eq!(state.mode, FabricMode::Static);
    assert!(state.vrfs.is_empty());
    assert!(
        state
            .ports
            .iter()
            .all(|port| port.place == PortPlacement::Static)
    );
    assert!(state.ports.iter().all(|port| port.session.is_none()));
    assert!(state.segments.iter().all(|s| s.remote_vteps.len() == 1));
    mode(&mut world, "nonsense");
    assert_eq!(desired(&world, "leaf1"), state);
}

#[test]
fn a_filter_has_prefixes_and_addresses_of_its_own_project_only() {
    let mut world = rack();
    dual_homed(&mut world, 1);
    dual_homed(&mut world, 2);
    runs(&mut world, allocation(1, 1, &["private"]));
    runs(&mut world, allocation(2, 2, &["private2"]));
    world.ok(ip(1, "internet", 1));
    world.ok(ip(2, "internet", 2));
    assert_eq!(
        imports(&port(&world, "leaf1", 1)),
        ["10.128.0.0/22", "192.0.2.1/32"]
    );
    assert_eq!(
        imports(&port(&world, "leaf2", 2)),
        ["10.128.4.0/22", "192.0.2.2/32"]
    );
    assert_ne!(port(&world, "leaf1", 1).vni, port(&world, "leaf1", 2).vni);
}

#[test]
fn a_firewall_is_in_the_underlay_with_the_vnis_of_its_networks() {
    let mut world = rack();
    dual_homed(&mut world, 1);
    runs(
        &mut world,
        AllocateMachine {
            kind: AllocationType::Firewall,
            image: text("firewall-3.0"),
            ..allocation(1, 1, &["internet", "private"])
        },
    );
    let mine = port(&world, "leaf2", 1);
    assert_eq!(mine.place, PortPlacement::Underlay);
    assert_eq!(imports(&mine), ["10.1.0.1/32"]);
    let vnis = mine.session.unwrap().vnis;
    assert_eq!(vnis, [100, vrf(&world, "private")].into());
    assert!(desired(&world, "leaf2").vrfs.is_empty());
}

#[test]
fn a_port_pinned_to_another_vni_has_no_session() {
    let mut world = rack();
    dual_homed(&mut world, 1);
    runs(&mut world, allocation(1, 1, &["private"]));
    let found = world.tables.get::<Switch>(&text("leaf1")).unwrap();
    let mut switch = Switch::clone(found);
    let foreign = Vni::try_from(vrf(&world, "private2")).unwrap();
    switch.ports.get_mut("swp1").unwrap().kept = Some(foreign);
    let record = Record::Switch(switch.into());
    let mut tables = world.tables.clone();
    tables
        .load(
            record.kind(),
            &record.encode().unwrap(),
            tables.revision() + 1,
        )
        .unwrap();
    let state = Fabric::of(&tables).desired(&text("leaf1")).unwrap();
    let pinned = state.ports.iter().find(|port| port.name == "swp1").unwrap();
    assert_eq!((pinned.place, pinned.vni), (PortPlacement::Routed, foreign));
    assert_eq!(pinned.session, None);
}

#[derive(Debug, Clone)]
enum Step {
    Allocate(u128, u128),
    Install(u128),
    Free(u128),
    Bmc,
    Obey,
    Address(u128),
    Mode(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let machine = || 1..=4u128;
    prop_oneof![
        4 => (machine(), 1..=2u128).prop_map(|(at, project)| Step::Allocate(at, project)),
        4 => machine().prop_map(Step::Install),
        2 => machine().prop_map(Step::Free),
        2 => Just(Step::Bmc),
        2 => Just(Step::Obey),
        2 => (1..=2u128).prop_map(Step::Address),
        1 => any::<bool>().prop_map(Step::Mode),
    ]
}

/// Both leaves do what they shall and say so.
fn obey(world: &mut World) {
    for leaf in ["leaf1", "leaf2"] {
        let known = world.tables.get::<Switch>(&text(leaf)).unwrap().clone();
        let ports = desired(world, leaf).ports.into_iter().map(|port| {
            let before = known.ports[&port.name].observed.clone();
            let seen = PortObserved {
                vni: port.vni,
                ..before.unwrap_or_default()
            };
            (port.name, seen)
        });
        world.ok(ReportSwitch {
            id: text(leaf),
            applied_term: 1,
            applied_generation: world.tables.revision(),
            duration_ms: 1,
            error: None,
            ports: ports.collect(),
        });
    }
}

/// Takes a step; what is refused changes nothing.
fn take(world: &mut World, step: &Step, counter: u128) {
    let op: Op = match *step {
        Step::Allocate(number, project) => {
            let network = if project == 1 { "private" } else { "private2" };
            AllocateMachine {
                id: id(counter),
                ..allocation(number, project, &[network])
            }
            .into()
        }
        Step::Install(number) => {
            let allocation = world.machine(number).allocation.as_ref();
            let Some(of) = allocation.map(|allocation| allocation.id.uuid().as_u128()) else {
                return;
            };
            installed(number, of).into()
        }
        Step::Free(number) => FreeMachine {
            id: id(number),
            project: None,
        }
        .into(),
        Step::Bmc => {
            if let Some(action) = world.open_orders().first().copied() {
                world.bmc(action, None);
            }
            return;
        }
        Step::Obey => return obey(world),
        Step::Address(project) => ip(counter, "internet", project).into(),
        Step::Mode(is_evpn) => return mode(world, if is_evpn { "evpn" } else { "static" }),
    };
    let _changes = world.apply(op).changes;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn both_leaves_want_the_same_and_no_filter_has_another_project(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut world = rack();
        for number in 1..=4 {
            dual_homed(&mut world, number);
        }
        for (counter, step) in steps.iter().enumerate() {
            world.later(1000);
            take(&mut world, step, 1000 + counter as u128);
            let [one, two] = ["leaf1", "leaf2"].map(|leaf| desired(&world, leaf));
            prop_assert_eq!(&one.ports, &two.ports);
            prop_assert_eq!(&one.vrfs, &two.vrfs);
            let mut owners = BTreeMap::new();
            for port in one.ports.iter().filter(|port| port.session.is_some()) {
                let number: u128 = port.name[3..].parse().unwrap();
                let allocation = world.machine(number).allocation.clone().unwrap();
                prop_assert_eq!(Some(port.vni.get()), allocation.tenant_vrf());
                for net in &*port.session.as_ref().unwrap().imports {
                    let owner = *owners.entry(*net).or_insert(allocation.project);
                    prop_assert_eq!(owner, allocation.project, "{} of two projects", net);
                }
            }
        }
    }
}

/// Run it with `cargo test --workspace --test state -- --ignored --nocapture leaves`.
#[test]
#[ignore = "a measurement"]
fn a_hundred_leaves_after_one_allocation() {
    const PAIRS: u128 = 50;
    const PORTS: u128 = 100;
    let mut tables = rack().tables;
    let now = ms(2_000_000_000);
    let mut run = |op: Op| {
        let outcome = apply(&mut tables, &Command::new(now, "bench", op));
        outcome.result.unwrap();
        outcome.changes
    };
    let ports: BTreeMap<_, _> = (0..PORTS).map(|n| (format!("swp{n}"), None)).collect();
    for pair in 0..PAIRS {
        for side in ["a", "b"] {
            let blind = RegisterSwitch {
                hears: false,
                ports: ports.clone(),
                ..leaf(&format!("leaf{pair}{side}"), &format!("rack-{pair}"))
            };
            run(blind.into());
        }
    }
    let mut changes = Vec::new();
    for number in 0..PAIRS * PORTS {
        let (pair, port) = (number / PORTS, format!("swp{}", number % PORTS));
        let number = 1000 + number;
        let names = ["a", "b"].map(|side| format!("leaf{pair}{side}"));
        let claims = names.each_ref().map(|name| (name.as_str(), port.as_str()));
        run(MachineSeen {
            id: id(number),
            partition: text(PARTITION),
            mac: None,
            seen_at: now,
            to_disk: false,
            stated_at: None,
        }
        .into());
        let mut registration = claiming(1, &claims);
        registration.id = id(number);
        for (nic, first) in registration.hardware.nics.iter_mut().zip([2, 6]) {
            let low = u32::try_from(number).unwrap().to_be_bytes();
            nic.mac = MacAddr([first, 0, low[0], low[1], low[2], low[3]]);
        }
        run(registration.into());
        let disks = vec![wiped("/dev/vda", None)];
        run(WipeDone {
            id: id(number),
            disks,
        }
        .into());
        let event = |kind| MachineEvent {
            id: id(number),
            kind,
            message: String::new(),
            time: now,
        };
        run(event(EventKind::Waiting).into());
        changes = run(AllocateMachine {
            id: id(1_000_000 + number),
            ..allocation(number, 1, &["private"])
        }
        .into());
        run(event(EventKind::Installing).into());
        changes.extend(run(installed(number, 1_000_000 + number).into()));
    }
    let mut fabric = Fabric::of(&tables);
    let began = Instant::now();
    let concerned = fabric.take(&tables, &changes);
    let states: Vec<_> = concerned.iter().map(|id| fabric.desired(id)).collect();
    println!(
        "one allocation: {:?}, {} switches read",
        began.elapsed(),
        states.len()
    );
    let before = Instant::now();
    assert_eq!(Fabric::of(&tables), fabric);
    println!("from the tables alone: {:?}", before.elapsed());
}
