//! Prefixes, VRF ids and addresses: given out, run dry, in use.

use super::{bare, external};
use crate::world::*;
use control_state::*;

#[test]
fn pools_run_dry() {
    let mut world = bare();
    world.ok(CreateNetwork {
        prefixes: vec!["10.0.0.0/29".parse().unwrap()],
        default_child_length: ChildLength {
            v4: Some(30),
            v6: None,
        },
        ..network("super")
    });
    world.ok(child("c-1", 1));
    world.ok(child("c-2", 1));
    assert_eq!(world.refused(child("c-3", 1)), ErrorCode::PrefixesExhausted);
    let ip = |number, ip: Option<&str>| CreateIp {
        id: id(number),
        network: text("c-1"),
        project: id(1),
        name: String::new(),
        description: String::new(),
        labels: Labels::new(),
        kind: IpType::Ephemeral,
        ip: ip.map(|ip| ip.parse().unwrap()),
        family: None,
        machine: None,
        underlay: false,
    };
    world.ok(ip(1, None));
    assert_eq!(
        world.refused(ip(2, Some("10.0.0.1"))),
        ErrorCode::AddressTaken
    );
    assert_eq!(
        world.refused(ip(2, Some("10.0.0.3"))),
        ErrorCode::AddressNotInNetwork
    );
    assert_eq!(
        world.refused(ip(2, Some("10.9.0.1"))),
        ErrorCode::AddressNotInNetwork
    );
    world.ok(ip(2, Some("10.0.0.2")));
    assert_eq!(world.refused(ip(3, None)), ErrorCode::AddressesExhausted);
    let network = world.tables.get::<Network>(&text("c-1")).unwrap();
    let usage = query::network_usage(&world.tables, network, Family::V4).unwrap();
    assert_eq!((usage.available_ips, usage.used_ips), (2, 2));
    let parent = world.tables.get::<Network>(&text("super")).unwrap();
    let usage = query::network_usage(&world.tables, parent, Family::V4).unwrap();
    assert_eq!((usage.available_prefixes, usage.used_prefixes), (2, 2));
    assert_eq!(
        query::network_usage(&world.tables, parent, Family::V6),
        None
    );
}

#[test]
fn what_is_used_stays() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    let delete = |name: &str| DeleteNetwork {
        id: text(name),
        project: None,
    };
    assert_eq!(world.refused(delete("super")), ErrorCode::StillInUse);
    assert_eq!(world.refused(delete("private")), ErrorCode::StillInUse);
    let foreign = DeleteNetwork {
        id: text("private"),
        project: Some(id(2)),
    };
    assert_eq!(world.refused(foreign), ErrorCode::NotFound);
    assert_eq!(
        world.refused(DeleteProject { id: id(1) }),
        ErrorCode::StillInUse
    );
    assert_eq!(
        world.refused(DeletePartition(text(PARTITION))),
        ErrorCode::StillInUse
    );
    assert_eq!(world.refused(DeleteSize(text(SIZE))), ErrorCode::StillInUse);
}

#[test]
fn vrfs_are_not_shared_by_chance() {
    let mut world = World::new();
    let private = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();
    assert_eq!(
        world.refused(external("net-a", "192.0.2.0/24", private)),
        ErrorCode::AlreadyExists
    );
    assert_eq!(
        world.refused(external("net-a", "192.0.2.0/24", PROVISIONING_VNI_DEFAULT)),
        ErrorCode::AlreadyExists
    );
    assert_eq!(
        world.refused(external("net-a", "192.0.2.0/24", 1 << 24)),
        ErrorCode::InvalidField
    );
    assert_eq!(
        world.refused(external("net-a", "10.128.0.0/24", 77)),
        ErrorCode::PrefixOverlap
    );
    world.ok(external("net-a", "192.0.2.0/24", 77));
}

/// The segment of a VRF's bridged machines has a VNI of its own, which no operator can give away.
#[test]
fn the_vni_of_bridged_machines_is_nobody_elses() {
    let mut world = World::new();
    world.ok(tests_support::announcement(1));
    let private = world.tables.get::<Network>(&text("private")).unwrap();
    let vrf = private.vrf.unwrap().try_into().unwrap();
    let segment = life::bridged_segment(vrf).unwrap().get();
    assert_eq!(
        world.refused(external("net-a", "192.0.2.0/24", segment)),
        ErrorCode::InvalidField
    );
    let labels = [(label::PROVISIONING_VNI.to_owned(), segment.to_string())];
    assert_eq!(
        world.refused(relabel(LabelsUpdate::Replace(labels.into()))),
        ErrorCode::InvalidField
    );
}
