//! The network of an installed system, where its image does not name one.

use control_state::life::{Fabric, MachineOrder, PortPlace, machine_order, port_intents};
use control_state::*;
use tests_support::announcement;

use crate::world::*;

/// A partition with one leaf whose image has the label `mode`, or none if that is empty.
fn world(fabric: &str, mode: &str) -> World {
    let mut world = World::new();
    world.ok(announcement(1));
    world.ok(fabric_is(fabric));
    world.ok(network_of_image(mode));
    world
}

fn fabric_is(word: &str) -> UpdatePartition {
    let label = (label::FABRIC.to_owned(), word.to_owned());
    relabel(LabelsUpdate::Replace([label].into()))
}

/// The network in the order of the installation.
fn ordered(world: &mut World) -> Networking {
    world.waiting(1);
    world.ok(AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(1)
    });
    let MachineOrder::Install(order) = machine_order(&world.tables, id(1)) else {
        panic!("{:?}", machine_order(&world.tables, id(1)));
    };
    order.networking
}

/// The place of the machine's port, and `true` if it may announce routes there.
fn place(world: &World) -> (PortPlace, bool) {
    let desired = Fabric::of(&world.tables).desired(&text("leaf1")).unwrap();
    let leaf = world.tables.get::<Switch>(&text("leaf1")).unwrap();
    assert_eq!(desired.ports, port_intents(&world.tables, leaf));
    let mut ports = desired.ports.into_iter();
    let port = ports.find(|port| port.name == "swp1").unwrap();
    (port.place, port.filter.is_some())
}

#[test]
fn an_image_without_the_label_gets_what_its_partition_needs() {
    use Networking::{Bridged, Routed, Static};
    for (fabric, mode, networking, wanted) in [
        ("static", "", Static, (PortPlace::Segment, false)),
        ("static", "routed", Routed, (PortPlace::Segment, false)),
        ("static", "bridged", Bridged, (PortPlace::Segment, false)),
        ("evpn", "", Bridged, (PortPlace::Bridged, false)),
        ("evpn", "routed", Routed, (PortPlace::Routed, true)),
        ("evpn", "bridged", Bridged, (PortPlace::Bridged, false)),
    ] {
        let mut world = world(fabric, mode);
        assert_eq!(ordered(&mut world), networking, "{fabric} {mode:?}");
        world.install(1, 1);
        assert_eq!(place(&world), wanted, "{fabric} {mode:?}");
    }
}

/// The ports of its tenants would change their kind of network while their systems run.
#[test]
fn the_fabric_of_a_partition_stays_while_its_machines_are_allocated() {
    for (from, to) in [("static", "evpn"), ("evpn", "static")] {
        let mut world = world(from, "");
        ordered(&mut world);
        let error = world.apply(fabric_is(to)).result.unwrap_err();
        assert_eq!(error.code, ErrorCode::StillInUse, "{error}");
        let text = error.to_string();
        for part in [
            "partition",
            label::FABRIC,
            &format!("{:?}", from),
            "machine",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(error.hint.contains("machine"), "{error}");
        world.ok(fabric_is(from));
        world.free(1);
        assert_eq!(
            world.refused(fabric_is(to)),
            ErrorCode::StillInUse,
            "reclaimed"
        );
        world.bmc(BmcAction::PowerOff, None);
        world.switch_obeys();
        assert_eq!(world.machine(1).allocation, None);
        world.ok(fabric_is(to));
    }
    let mut world = world("static", "");
    ordered(&mut world);
    world.ok(relabel(LabelsUpdate::Replace(Labels::new())));
    assert_eq!(world.refused(fabric_is("evpn")), ErrorCode::StillInUse);
}

#[test]
fn a_firewall_is_never_bridged() {
    let mut world = world("evpn", "");
    let names = world.with_firewall_networks();
    world.waiting(1);
    world.ok(AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: names
            .map(|name| WantedNetwork {
                network: text(name),
                ips: vec![],
            })
            .to_vec(),
        ..allocation_of(1)
    });
    let allocation = world.machine(1).allocation.clone().unwrap();
    assert_eq!(allocation.networking, Networking::Static);
    world.install(1, 1);
    assert_eq!(place(&world), (PortPlace::Underlay, true));
}

/// A control node of level 1 would not store the network. It forbids the label of the partition too.
#[test]
fn an_older_control_node_keeps_the_network_static() {
    let mut world = World::new();
    world.ok(AnnounceNode {
        level: 1,
        ..announcement(1)
    });
    assert_eq!(world.refused(fabric_is("evpn")), ErrorCode::NotEnabled);
    world.ok(network_of_image("routed"));
    assert_eq!(ordered(&mut world), Networking::Static);
}

/// Its leaves know the prefixes of its child network and no route to another address.
#[test]
fn a_bridged_machine_gets_no_address_that_nobody_would_reach() {
    for (fabric, mode, is_refused) in [
        ("evpn", "", true),
        ("evpn", "bridged", true),
        ("evpn", "routed", false),
        ("static", "bridged", false),
        ("static", "", false),
    ] {
        let mut world = world(fabric, mode);
        let names = world.with_firewall_networks();
        world.waiting(1);
        let wanted = AllocateMachine {
            networks: names
                .map(|name| WantedNetwork {
                    network: text(name),
                    ips: vec![],
                })
                .to_vec(),
            ..allocation_of(1)
        };
        let result = world.apply(wanted).result;
        let Err(error) = result else {
            assert!(!is_refused, "{fabric} {mode:?}");
            continue;
        };
        assert!(is_refused, "{fabric} {mode:?}: {error}");
        assert_eq!(error.code, ErrorCode::NetworkNotAllowed);
        assert!(error.to_string().contains("internet"), "{error}");
        assert!(error.hint.contains(label::NETWORKING), "{error}");
    }
}
