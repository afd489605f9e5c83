//! Released numbers: who gets them again, and when.

use control_state::*;

use crate::world::*;

const COOLDOWN_MS: u64 = 600_000;

fn delete_ip(world: &mut World, ip: &Ip) {
    let key = IpKey {
        namespace: ip.namespace,
        ip: ip.ip,
    };
    world.ok(DeleteIp {
        key,
        project: ip.project,
        underlay: false,
    });
}

/// A /29 that everybody may have addresses of: six of them.
fn with_internet() -> World {
    let mut world = World::new();
    world.ok(CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["192.0.2.0/29".parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(100),
        ..network("internet")
    });
    world
}

fn named(number: u128, project: u128, address: &str) -> CreateIp {
    CreateIp {
        ip: Some(address.parse().unwrap()),
        ..ip(number, "internet", project)
    }
}

fn create(world: &mut World, number: u128, project: u128) -> std::sync::Arc<Ip> {
    world.ok(ip(number, "internet", project)).ip().unwrap()
}

#[test]
fn an_address_cools_down_before_another_project_gets_it() {
    let mut world = with_internet();
    let first = create(&mut world, 1, 1);
    assert_eq!(first.ip.to_string(), "192.0.2.1");
    delete_ip(&mut world, &first);
    assert_eq!(
        create(&mut world, 2, 2).ip.to_string(),
        "192.0.2.2",
        "next fit"
    );
    assert_eq!(
        world.refused(named(3, 2, "192.0.2.1")),
        ErrorCode::NumberCooling
    );
    let before = world.clone();
    world.ok(named(3, 1, "192.0.2.1"));
    world = before;
    world.tick(COOLDOWN_MS - 1);
    assert_eq!(
        world.refused(named(3, 2, "192.0.2.1")),
        ErrorCode::NumberCooling
    );
    world.later(1);
    world.ok(named(3, 2, "192.0.2.1"));
    world.tick(1);
    assert_eq!(world.tables.all::<CoolingNumber>().count(), 0);
}

#[test]
fn one_project_does_not_use_up_a_shared_network_by_coming_and_going() {
    let mut world = with_internet();
    for number in 0..50 {
        let made = create(&mut world, number, 1);
        delete_ip(&mut world, &made);
    }
    for number in 100..105 {
        create(&mut world, number, 2);
    }
    assert_eq!(
        world.refused(ip(106, "internet", 2)),
        ErrorCode::AddressesExhausted,
        "one of six cools down"
    );
    world.tick(COOLDOWN_MS);
    create(&mut world, 107, 2);

    let mut world = World::new();
    for number in 0..300 {
        let made = world.ok(ip(number, "private", 1)).ip().unwrap();
        delete_ip(&mut world, &made);
    }
    assert!(world.tables.all::<CoolingNumber>().count() <= 16);
    for number in 0..50 {
        world.ok(child(&format!("child-{number}"), 1));
        world.ok(DeleteNetwork {
            id: text(&format!("child-{number}")),
            project: Some(id(1)),
        });
    }
    let is_prefix = |cooling: &&std::sync::Arc<CoolingNumber>| {
        matches!(cooling.number, PoolNumber::Prefix { .. })
    };
    assert!(
        world
            .tables
            .all::<CoolingNumber>()
            .filter(is_prefix)
            .count()
            <= 4
    );
    world.ok(child("theirs", 2));
}

/// Like an address that the network chooses, one that the caller names.
#[test]
fn one_project_does_not_use_up_a_shared_network_by_naming_its_addresses() {
    let mut world = with_internet();
    for (number, last) in (1..=6).enumerate() {
        let wanted = named(number as u128, 1, &format!("192.0.2.{last}"));
        if let Ok(reply) = world.apply(wanted).result {
            delete_ip(&mut world, &reply.ip().unwrap());
        }
    }
    for number in 100..105 {
        create(&mut world, number, 2);
    }
}

/// VRF ids are one pool for all tenants.
#[test]
fn one_project_does_not_use_up_the_vrf_ids_by_coming_and_going() {
    let mut world = World::new();
    for number in 0..200 {
        let name = format!("child-{number}");
        world.ok(child(&name, 1));
        world.ok(DeleteNetwork {
            id: text(&name),
            project: Some(id(1)),
        });
    }
    let cooling = world.tables.all::<CoolingNumber>();
    let vrfs = cooling.filter(|cooling| matches!(cooling.number, PoolNumber::Vrf(_)));
    let vrfs = vrfs.count();
    assert!(vrfs <= 64, "{vrfs} VRF ids cool down for one project");
    world.ok(child("theirs", 2));
}

#[test]
fn segments_and_prefixes_of_a_network_cool_down() {
    let mut world = World::new();
    let private = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .clone();
    world.ok(DeleteNetwork {
        id: text("private"),
        project: Some(id(1)),
    });
    let other = world.ok(child("other", 2)).network().unwrap();
    assert_ne!(other.vrf, private.vrf);
    assert_ne!(other.prefixes, private.prefixes);
    let external = |vrf| CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["192.0.2.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf,
        ..network("internet")
    };
    assert_eq!(
        world.refused(external(private.vrf)),
        ErrorCode::NumberCooling
    );
    world.later(COOLDOWN_MS);
    world.ok(external(private.vrf));
}

#[test]
fn as_numbers_come_back_late() {
    let mut world = World::new();
    world.running(1, 1);
    let first = world.machine(1).allocation.clone().unwrap();
    world.switch_obeys();
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert_eq!(world.machine(1).allocation, None);
    world.waiting(2);
    let second = world.allocate(2).allocation.clone().unwrap();
    assert_ne!(second.asn, first.asn);
    assert_ne!(second.networks[0].ips, first.networks[0].ips);
}

#[test]
fn the_cooldown_is_the_partitions() {
    let mut world = with_internet();
    let set = |seconds: &str| {
        let label = (label::NUMBER_COOLDOWN.to_owned(), seconds.to_owned());
        relabel(LabelsUpdate::Replace([label].into()))
    };
    for bad in ["-1", "soon", "86401"] {
        assert_eq!(world.refused(set(bad)), ErrorCode::InvalidField);
    }
    world.ok(set("0"));
    let made = create(&mut world, 1, 1);
    delete_ip(&mut world, &made);
    world.ok(named(2, 2, "192.0.2.1"));
    world.ok(set("5"));
    let made = create(&mut world, 3, 1);
    delete_ip(&mut world, &made);
    let again = named(4, 2, &made.ip.to_string());
    assert_eq!(world.refused(again.clone()), ErrorCode::NumberCooling);
    world.later(5_000);
    world.ok(again);
}

#[test]
fn the_search_survives_a_restart() {
    let mut world = with_internet();
    create(&mut world, 1, 1);
    let mut restored = Tables::new();
    for (record, revision) in Kind::ALL
        .iter()
        .flat_map(|kind| world.tables.records(*kind))
    {
        let bytes = record.encode().unwrap();
        restored.load(record.kind(), &bytes, revision).unwrap();
    }
    restored.set_revision(world.tables.revision());
    let mut other = World::of(restored, world.now);
    for world in [&mut world, &mut other] {
        let made = create(world, 2, 1);
        delete_ip(world, &made);
        assert_eq!(create(world, 3, 2).ip.to_string(), "192.0.2.3");
    }
    assert_eq!(world.tables, other.tables);
}
