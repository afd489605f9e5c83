//! Which fields a network of each type has.

use super::{bare, namespaced};
use crate::world::*;
use control_state::ErrorCode::{
    NetworkFieldMissing as Missing, NetworkFieldNotAllowed as NotAllowed,
};
use control_state::NetworkType::{Child, ChildShared, External, Super, SuperNamespaced, Underlay};
use control_state::*;

/// Makes a network wrong that is right otherwise.
type Change = fn(&mut CreateNetwork);

/// Networks of each type with a field too many, too few, or out of bounds.
const CASES: &[(NetworkType, Change, ErrorCode)] = &[
    (Super, |op| op.prefixes.clear(), Missing),
    (
        Super,
        |op| op.default_child_length = ChildLength::default(),
        Missing,
    ),
    (Super, |op| op.parent = Some(text("x1")), NotAllowed),
    (
        Super,
        |op| {
            op.length = ChildLength {
                v4: Some(22),
                v6: None,
            }
        },
        NotAllowed,
    ),
    (
        Super,
        |op| op.default_child_length.v4 = Some(8),
        ErrorCode::InvalidField,
    ),
    (
        Super,
        |op| op.default_child_length.v4 = Some(14),
        ErrorCode::InvalidField,
    ),
    (
        Super,
        |op| op.default_child_length.v6 = Some(64),
        ErrorCode::InvalidField,
    ),
    (
        Super,
        |op| op.min_child_length.v4 = Some(14),
        ErrorCode::InvalidField,
    ),
    (
        Super,
        |op| op.min_child_length.v6 = Some(64),
        ErrorCode::InvalidField,
    ),
    (
        Super,
        |op| op.min_child_length.v4 = Some(24),
        ErrorCode::InvalidField,
    ),
    (
        Super,
        |op| op.prefixes = vec!["10.0.0.1/16".parse().unwrap()],
        ErrorCode::InvalidField,
    ),
    (
        Super,
        |op| op.prefixes.push("10.128.64.0/18".parse().unwrap()),
        ErrorCode::PrefixOverlap,
    ),
    (Super, |op| op.vrf = Some(4000), ErrorCode::AlreadyExists),
    (SuperNamespaced, |_| {}, NotAllowed),
    (
        SuperNamespaced,
        |op| {
            op.partition = None;
            op.vrf = Some(9);
        },
        ErrorCode::InvalidField,
    ),
    (External, |_| {}, NotAllowed),
    (
        External,
        |op| op.default_child_length = ChildLength::default(),
        Missing,
    ),
    (
        External,
        |op| {
            op.default_child_length = ChildLength::default();
            op.vrf = Some(4000);
            op.destination_prefixes = vec!["::/0".parse().unwrap()];
        },
        ErrorCode::InvalidField,
    ),
    (
        Underlay,
        |op| {
            op.default_child_length = ChildLength::default();
            op.vrf = Some(1);
        },
        NotAllowed,
    ),
    (
        Underlay,
        |op| {
            op.default_child_length = ChildLength::default();
            op.prefixes = vec!["fd00::/64".parse().unwrap()];
        },
        ErrorCode::InvalidField,
    ),
    (Child, |_| {}, Missing),
    (Child, |op| op.project = Some(id(1)), NotAllowed),
    (
        ChildShared,
        |op| {
            op.prefixes.clear();
            op.default_child_length = ChildLength::default();
        },
        Missing,
    ),
];

#[test]
fn fields_by_type() {
    let mut world = bare();
    for (at, (kind, change, code)) in CASES.iter().enumerate() {
        let mut op = CreateNetwork {
            kind: *kind,
            ..network("new-net")
        };
        change(&mut op);
        assert_eq!(world.refused(op), *code, "case {at} {kind:?}");
    }
}

#[test]
fn a_version_that_the_network_lacks() {
    let mut world = World::new();
    let wanted = CreateIp {
        family: Some(Family::V6),
        ..ip(1, "private", 1)
    };
    assert_eq!(world.refused(wanted), ErrorCode::InvalidField);
}

#[test]
fn who_is_there_is_said_before_what_is_wrong() {
    let mut world = World::new();
    let wrong = CreateNetwork {
        prefixes: Vec::new(),
        partition: Some(text("nowhere")),
        ..network("super")
    };
    assert_eq!(world.refused(wrong), ErrorCode::AlreadyExists);
}

#[test]
fn super_networks_of_no_partition_and_of_a_project() {
    let mut world = bare();
    world.ok(CreateNetwork {
        partition: None,
        ..network("anywhere")
    });
    let of_one = CreateNetwork {
        project: Some(id(1)),
        prefixes: vec!["172.16.0.0/16".parse().unwrap()],
        ..network("of-one")
    };
    world.ok(of_one);
    let out_of = |name: &str, parent: &str, project| CreateChildNetwork {
        partition: None,
        parent: Some(text(parent)),
        ..child(name, project)
    };
    world.ok(out_of("child-1", "anywhere", 2));
    world.ok(out_of("child-2", "of-one", 1));
    let foreign = out_of("child-3", "of-one", 2);
    assert_eq!(world.refused(foreign), ErrorCode::NotFound);
    // The partition's own is for everybody, or it has none.
    assert_eq!(
        world.refused(child("child-4", 1)),
        ErrorCode::NoSuperNetwork
    );
    world.ok(CreateNetwork {
        project: Some(id(2)),
        vrf: Some(4001),
        ..namespaced("spaces-of-two")
    });
    let child = world.ok(out_of("child-5", "spaces-of-two", 2));
    let child = child.network().unwrap();
    assert_eq!((child.namespace, child.vrf), (Some(id(2)), Some(4001)));
}
