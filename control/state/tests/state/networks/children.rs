//! Networks that come out of others.

use super::{bare, dual, namespaced};
use crate::world::*;
use control_state::*;

#[test]
fn children_by_version_of_ip() {
    let mut world = bare();
    world.ok(dual());
    let cases = [
        (None, vec!["10.128.0.0/22", "fd00::/64"]),
        (Some(NetworkFamily::V4), vec!["10.128.4.0/22"]),
        (Some(NetworkFamily::V6), vec!["fd00:0:0:1::/64"]),
        (
            Some(NetworkFamily::Dual),
            vec!["10.128.8.0/22", "fd00:0:0:2::/64"],
        ),
    ];
    let mut vrfs = std::collections::BTreeSet::new();
    for (at, (family, expected)) in cases.into_iter().enumerate() {
        let op = CreateChildNetwork {
            family,
            ..child(&format!("child-{at}"), 1)
        };
        let network = world.ok(op).network().unwrap();
        let prefixes: Vec<_> = network.prefixes.iter().map(ToString::to_string).collect();
        assert_eq!(prefixes, expected);
        assert_eq!(network.partition, Some(text(PARTITION)));
        assert!(vrfs.insert(network.vrf.unwrap()), "a VRF of its own");
    }
    let short = ChildLength {
        v4: Some(16),
        v6: None,
    };
    let op = CreateChildNetwork {
        length: short,
        ..child("short", 1)
    };
    assert_eq!(world.refused(op), ErrorCode::InvalidField);
    let whole = ChildLength {
        v4: Some(14),
        v6: None,
    };
    let op = CreateChildNetwork {
        length: whole,
        ..child("whole", 1)
    };
    assert_eq!(world.refused(op), ErrorCode::InvalidField);
    let long = ChildLength {
        v4: Some(28),
        v6: None,
    };
    let op = CreateChildNetwork {
        length: long,
        family: Some(NetworkFamily::V4),
        ..child("long", 1)
    };
    assert_eq!(
        world.ok(op).network().unwrap().prefixes[0].to_string(),
        "10.128.12.0/28"
    );

    world.ok(DeleteNetwork {
        id: text("child-1"),
        project: Some(id(1)),
    });
    let again = world.ok(CreateChildNetwork {
        family: Some(NetworkFamily::V4),
        ..child("again", 1)
    });
    assert_eq!(
        again.network().unwrap().prefixes[0].to_string(),
        "10.128.16.0/22",
        "gaps are used when the end is reached"
    );
}

#[test]
fn children_of_what() {
    let mut world = World::new();
    world.ok(CreatePartition(partition("empty")));
    let mut op = child("new-net", 1);
    op.partition = Some(text("empty"));
    assert_eq!(world.refused(op.clone()), ErrorCode::NoSuperNetwork);
    op.partition = None;
    assert_eq!(world.refused(op.clone()), ErrorCode::InvalidField);
    op.parent = Some(text("private"));
    assert_eq!(world.refused(op.clone()), ErrorCode::NetworkNotAllowed);
    op.parent = Some(text("super"));
    world.ok(op.clone());
    op.id = text("both");
    op.partition = Some(text(PARTITION));
    assert_eq!(world.refused(op), ErrorCode::InvalidField);
    assert_eq!(world.refused(child("x-net", 9)), ErrorCode::NotFound);
    assert_eq!(world.refused(child("private", 1)), ErrorCode::AlreadyExists);
    assert_eq!(world.refused(network("second")), ErrorCode::PrefixOverlap);
    let second = CreateNetwork {
        prefixes: vec!["172.16.0.0/16".parse().unwrap()],
        ..network("second")
    };
    assert_eq!(world.refused(second), ErrorCode::InvalidField);
}

#[test]
fn namespaces_may_overlap() {
    let mut world = World::new();
    world.ok(namespaced("anyone"));
    let of = |name: &str, project| CreateChildNetwork {
        partition: None,
        parent: Some(text("anyone")),
        ..child(name, project)
    };
    let one = world.ok(of("ns-1", 1)).network().unwrap();
    let two = world.ok(of("ns-2", 2)).network().unwrap();
    let three = world.ok(of("ns-3", 1)).network().unwrap();
    assert_eq!(one.prefixes, two.prefixes);
    assert_ne!(one.prefixes, three.prefixes);
    assert_ne!(one.vrf, two.vrf);
    let first = world.ok(ip(1, "ns-1", 1)).ip().unwrap();
    let second = world.ok(ip(2, "ns-2", 2)).ip().unwrap();
    assert_eq!(first.ip, second.ip);
    assert_eq!(world.tables.all::<Ip>().count(), 2);
    let key = IpKey {
        namespace: Some(id(1)),
        ip: first.ip,
    };
    assert_eq!(
        world.refused(DeleteIp {
            key,
            project: id(2),
            underlay: false
        }),
        ErrorCode::NotFound
    );
    world.ok(DeleteIp {
        key,
        project: id(1),
        underlay: false,
    });
}

#[test]
fn an_underlay_is_the_administrators() {
    let mut world = World::new();
    world.ok(CreateNetwork {
        kind: NetworkType::Underlay,
        prefixes: vec!["192.0.2.0/29".parse().unwrap()],
        default_child_length: ChildLength::default(),
        ..network("underlay")
    });
    assert_eq!(
        world.refused(ip(1, "underlay", 1)),
        ErrorCode::PermissionDenied
    );
    world.ok(CreateIp {
        underlay: true,
        ..ip(1, "underlay", 1)
    });
}
