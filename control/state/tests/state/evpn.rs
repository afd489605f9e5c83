//! Partitions whose leaves speak EVPN: places of ports, and the routes that machines may announce.

use std::collections::BTreeSet;

use control_state::life::{Fabric, PortIntent, PortPlace};
use control_state::*;
use proptest::prelude::*;
use tests_support::announcement;

use crate::properties::steps::{MACHINES, Step, op_of, step};
use crate::world::*;

fn evpn(word: &str) -> UpdatePartition {
    let label = (label::FABRIC.to_owned(), word.to_owned());
    relabel(LabelsUpdate::Replace([label].into()))
}

/// A world whose control nodes know the label.
fn knowing() -> World {
    let mut world = World::new();
    world.ok(announcement(1));
    world
}

pub(crate) fn world() -> World {
    let mut world = knowing();
    world.ok(evpn("evpn"));
    world.ok(network_of_image("routed"));
    world.ok(leaf("leaf2", "rack-1"));
    world
}

/// Puts a machine on offer that hangs on the same port of both leaves.
fn dual_homed(world: &mut World, number: u128) {
    world.boot(number, "boot-1");
    let mut registration = registration(number, "boot-1");
    let mut second = registration.hardware.nics[0].clone();
    second.name = "eth1".into();
    second.mac = mac(number + 100);
    second.neighbours[0].chassis_id = "leaf2".into();
    second.neighbours[0].system_name = "leaf2".into();
    registration.hardware.nics.push(second);
    world.hear("leaf2", &format!("swp{number}"), &[mac(number + 100)]);
    world.ok(registration);
    world.wipe(number);
    world.event(number, EventKind::Waiting);
}

pub(crate) fn port(world: &World, switch: &str, port: &str) -> PortIntent {
    let desired = Fabric::of(&world.tables).desired(&text(switch)).unwrap();
    let mut ports = desired.ports.into_iter();
    ports.find(|found| found.name == port).unwrap()
}

pub(crate) fn prefixes(port: &PortIntent) -> Vec<String> {
    let filter = port.filter.as_ref().unwrap();
    filter.prefixes.iter().map(ToString::to_string).collect()
}

/// Allocates machine `number` with the allocation of the same number, and installs it.
pub(crate) fn allocated(world: &mut World, number: u128, wanted: AllocateMachine) {
    world.ok(AllocateMachine {
        machine: Some(id(number)),
        partition: None,
        size: None,
        ..wanted
    });
    world.install(number, number);
}

#[test]
fn an_older_control_node_forbids_the_label() {
    let mut world = World::new();
    let level = |level| AnnounceNode {
        level,
        ..announcement(1)
    };
    world.ok(level(1));
    assert_eq!(world.refused(evpn("evpn")), ErrorCode::NotEnabled);
    world.ok(level(2));
    world.ok(evpn("evpn"));
}

#[test]
fn a_fabric_is_static_or_evpn() {
    let mut world = knowing();
    assert_eq!(world.refused(evpn("vxlan")), ErrorCode::InvalidField);
    assert_eq!(world.refused(evpn("")), ErrorCode::InvalidField);
    world.running(1, 1);
    let before = Fabric::of(&world.tables).desired(&text("leaf1")).unwrap();
    world.ok(evpn("static"));
    let after = Fabric::of(&world.tables).desired(&text("leaf1")).unwrap();
    assert_eq!(before, after);
    let is_as_ever = |port: &PortIntent| port.place == PortPlace::Segment && port.filter.is_none();
    assert!(after.ports.iter().all(is_as_ever));
    assert!(after.vrfs.is_empty());
}

#[test]
fn a_port_goes_into_its_tenants_vrf_and_back() {
    let mut world = world();
    dual_homed(&mut world, 1);
    let places = |world: &World| {
        let [one, two] = ["leaf1", "leaf2"].map(|leaf| port(world, leaf, "swp1"));
        assert_eq!(one, two, "both leaves");
        (one.vni.get(), one.place, one.filter.is_some())
    };
    let boots = (PROVISIONING_VNI_DEFAULT, PortPlace::Segment, false);
    assert_eq!(places(&world), boots);
    world.ok(AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(1)
    });
    assert_eq!(places(&world), boots, "hammer installs");
    world.install(1, 1);
    let private = world.tables.get::<Network>(&text("private")).unwrap();
    let vrf = private.vrf.unwrap();
    assert_eq!(places(&world), (vrf, PortPlace::Routed, true));
    assert_eq!(prefixes(&port(&world, "leaf1", "swp1")), ["10.128.0.0/22"]);
    let asn = world.machine(1).allocation.as_ref().unwrap().asn;
    let filter = port(&world, "leaf1", "swp1").filter.unwrap();
    assert_eq!((filter.asn, filter.vnis.len()), (asn, 0));

    for leaf in ["leaf1", "leaf2"] {
        let desired = Fabric::of(&world.tables).desired(&text(leaf)).unwrap();
        let [segment] = &desired.segments[..] else {
            panic!("{:?}", desired.segments);
        };
        assert!(segment.provisioning);
        assert!(segment.remote_vteps.is_empty(), "EVPN finds the others");
        let vrfs: Vec<_> = desired.vrfs.iter().map(|vrf| vrf.name()).collect();
        assert_eq!(vrfs, [format!("Vrf{vrf}")]);
        assert_eq!(desired.vrfs[0].table(), 1_000_000 + vrf);
    }
    world.phone_home(1);
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    assert_eq!(places(&world), boots, "its power is off");
}

#[test]
fn a_firewall_is_in_the_underlay() {
    let mut world = world();
    let names = world.with_firewall_networks();
    world.waiting(1);
    let wanted = AllocateMachine {
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: names
            .map(|name| WantedNetwork {
                network: text(name),
                ips: vec![],
            })
            .to_vec(),
        ..allocation_of(1)
    };
    allocated(&mut world, 1, wanted);
    let found = port(&world, "leaf1", "swp1");
    let private = world.tables.get::<Network>(&text("private")).unwrap();
    let vrf = private.vrf.unwrap();
    assert_eq!((found.vni.get(), found.place), (vrf, PortPlace::Underlay));
    let vnis = found.filter.clone().unwrap().vnis;
    assert_eq!(vnis, BTreeSet::from([vrf, 100]));
    let [prefix] = &prefixes(&found)[..] else {
        panic!("{found:?}");
    };
    assert!(prefix.starts_with("10.1.0.") && prefix.ends_with("/32"));
    let desired = Fabric::of(&world.tables).desired(&text("leaf1")).unwrap();
    assert!(desired.vrfs.is_empty(), "its VRFs are its own");
}

/// Addresses and networks change filters, each those of its project only. The world proves after
/// each step that the switches are told and that nothing else differs.
#[test]
fn a_filter_has_the_prefixes_of_one_project() {
    let mut world = world();
    world.with_firewall_networks();
    world.ok(child("theirs", 2));
    for (number, project, network) in [(1, 1, "private"), (2, 2, "theirs")] {
        world.waiting(number);
        let wanted = AllocateMachine {
            project: id(project),
            networks: vec![WantedNetwork {
                network: text(network),
                ips: vec![],
            }],
            ..allocation_of(number)
        };
        allocated(&mut world, number, wanted);
    }
    let both = |world: &World| ["swp1", "swp2"].map(|name| prefixes(&port(world, "leaf1", name)));
    let [mine, theirs] = [["10.128.0.0/22"], ["10.128.4.0/22"]];
    assert_eq!(both(&world), [mine, theirs]);
    world.ok(ip(11, "private", 1));
    assert_eq!(both(&world), [mine, theirs], "it is in the prefix already");
    world.ok(ip(12, "internet", 1));
    world.ok(ip(13, "internet", 2));
    let [of_one, of_two] = both(&world);
    assert_eq!(of_one.len(), 2);
    assert_eq!(of_two.len(), 2);
    assert_ne!(of_one[1], of_two[1]);
    let key = IpKey {
        namespace: None,
        ip: of_one[1].trim_end_matches("/32").parse().unwrap(),
    };
    world.ok(DeleteIp {
        key,
        project: id(1),
        underlay: false,
    });
    assert_eq!(both(&world), [vec![mine[0].to_owned()], of_two]);
}

fn desired(world: &World, leaf: &str) -> life::SwitchDesired {
    Fabric::of(&world.tables).desired(&text(leaf)).unwrap()
}

#[test]
fn a_bridged_machine_is_in_the_segment_of_its_vrf() {
    let mut world = world();
    world.ok(network_of_image("bridged"));
    dual_homed(&mut world, 1);
    allocated(&mut world, 1, allocation_of(1));
    let private = world.tables.get::<Network>(&text("private")).unwrap();
    let vrf = private.vrf.unwrap();
    for leaf in ["leaf1", "leaf2"] {
        let port = port(&world, leaf, "swp1");
        assert_eq!((port.vni.get(), port.place), (vrf, PortPlace::Bridged));
        assert_eq!(port.filter, None, "it speaks no BGP");
        let desired = desired(&world, leaf);
        let vrfs: Vec<_> = desired.vrfs.iter().map(|vrf| vrf.vni.get()).collect();
        assert_eq!(vrfs, [vrf]);
        let [provisioning, segment] = &desired.segments[..] else {
            panic!("{:?}", desired.segments);
        };
        assert!(provisioning.provisioning, "of the other ports");
        assert_eq!(Some(segment.vni), life::bridged_segment(port.vni));
        assert!(!segment.provisioning && segment.remote_vteps.is_empty());
        let gateway = segment.gateway.clone().unwrap();
        let addresses: Vec<_> = gateway.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(gateway.vrf.get(), vrf);
        assert_eq!(addresses, ["10.128.0.0/22", "169.254.1.1/32"]);
    }
    // A label that changes later moves no port.
    world.ok(network_of_image("routed"));
    assert_eq!(port(&world, "leaf1", "swp1").place, PortPlace::Bridged);
    world.phone_home(1);
    for leaf in ["leaf1", "leaf2"] {
        world.leaf_obeys(leaf);
    }
    assert_eq!(world.machine(1).phase, Phase::Running);
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    for leaf in ["leaf1", "leaf2"] {
        let desired = desired(&world, leaf);
        assert!(desired.vrfs.is_empty() && desired.segments.len() == 1);
        assert_eq!(port(&world, leaf, "swp1").place, PortPlace::Segment);
    }
}

#[test]
fn routed_and_bridged_machines_of_a_network_share_a_vrf() {
    let mut world = world();
    world.waiting(1);
    world.waiting(2);
    allocated(&mut world, 1, allocation_of(1));
    world.ok(network_of_image("bridged"));
    allocated(&mut world, 2, allocation_of(2));
    let [one, two] = ["swp1", "swp2"].map(|name| port(&world, "leaf1", name));
    assert_eq!(
        (one.place, two.place),
        (PortPlace::Routed, PortPlace::Bridged)
    );
    assert_eq!(one.vni, two.vni);
    let desired = desired(&world, "leaf1");
    assert_eq!(desired.vrfs.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        max_shrink_iters: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// `World::apply` holds the fabric against a fresh one after each command.
    #[test]
    fn a_fabric_that_follows_is_a_fresh_one(
        steps in prop::collection::vec((step(), 0..20_u8), 1..60),
    ) {
        let mut world = world();
        world.with_firewall_networks();
        for number in 1..=MACHINES {
            world.waiting(number);
        }
        for (counter, (step, chance)) in steps.iter().enumerate() {
            let counter = counter as u128 + 1000;
            world.later(1000);
            if matches!(step, Step::Switch) {
                world.switch_obeys();
            }
            for op in op_of(&world, step, counter) {
                drop(world.apply(op).result);
            }
            match chance {
                0 => drop(world.apply(evpn("static")).result),
                1..=3 => drop(world.apply(evpn("evpn")).result),
                4..=8 => drop(world.apply(ip(counter + 5000, "internet", 1)).result),
                9..=11 => drop(world.apply(network_of_image("bridged")).result),
                12 | 13 => drop(world.apply(network_of_image("routed")).result),
                _ => {}
            }
            check_projects(&world);
        }
    }
}

/// Every prefix in the filter of a server is in a child network of its project, or one of the
/// project's addresses.
fn check_projects(world: &World) {
    let fabric = Fabric::of(&world.tables);
    let machines = world.tables.all::<Machine>();
    for machine in machines.filter(|machine| machine.segment == Segment::Tenant) {
        let project = machine.allocation.as_ref().unwrap().project;
        for link in machine.links.iter().filter(|link| !link.unclaimed) {
            let desired = fabric.desired(&link.switch).unwrap();
            let mut ports = desired.ports.iter();
            let port = ports.find(|port| port.name == link.port).unwrap();
            for prefix in port.filter.iter().flat_map(|filter| filter.prefixes.iter()) {
                let mut networks = world.tables.all::<Network>();
                let in_network = networks.any(|network| {
                    let is_own = network.kind.is_child() && network.project == Some(project);
                    is_own && network.prefixes.iter().any(|of| of.contains(prefix))
                });
                let mut ips = query::project_ips(&world.tables, project);
                assert!(
                    in_network || ips.any(|ip| prefix.contains(&ip.ip)),
                    "{prefix}"
                );
            }
        }
    }
}
