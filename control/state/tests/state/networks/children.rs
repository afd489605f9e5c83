//! Networks that come out of others.

use super::{bare, dual, namespaced, no_change};
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

fn lengths(v4: u8) -> ChildLength {
    ChildLength {
        v4: Some(v4),
        v6: None,
    }
}

/// One call must not take half of what all projects share.
#[test]
fn without_a_minimum_a_child_of_a_shared_network_is_no_larger_than_the_default() {
    let mut world = upgraded();
    let wanted = |length| CreateChildNetwork {
        length: lengths(length),
        ..child(&format!("of-{length}"), 1)
    };
    for length in [17, 21] {
        let error = world.apply(wanted(length)).result.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidField, "/{length}");
        assert!(error.to_string().contains("22..=32"), "{error}");
    }
    world.ok(wanted(22));
    world.ok(wanted(23));
    // An administrator decides otherwise, for one child or for all.
    world.ok(CreateNetwork {
        kind: NetworkType::Child,
        project: Some(id(1)),
        prefixes: vec![],
        default_child_length: ChildLength::default(),
        length: lengths(20),
        ..network("given")
    });
    world.ok(UpdateNetwork {
        min_child_length: Some(lengths(19)),
        ..no_change("super")
    });
    world.ok(wanted(19));
    assert_eq!(world.refused(wanted(18)), ErrorCode::InvalidField);
}

/// Nobody else takes addresses of these.
#[test]
fn in_a_network_of_its_own_a_project_chooses_the_length() {
    let mut world = bare();
    world.ok(tests_support::announcement(1));
    world.ok(namespaced("anyone"));
    world.ok(CreateNetwork {
        partition: None,
        project: Some(id(1)),
        prefixes: vec!["172.16.0.0/16".parse().unwrap()],
        ..network("own")
    });
    for parent in ["anyone", "own"] {
        world.ok(CreateChildNetwork {
            partition: None,
            parent: Some(text(parent)),
            length: lengths(17),
            ..child(&format!("in-{parent}"), 1)
        });
    }
}

#[test]
fn a_project_takes_at_most_half_of_a_shared_network() {
    let mut world = bare();
    world.ok(tests_support::announcement(1));
    world.ok(CreateNetwork {
        prefixes: vec!["10.0.0.0/16".parse().unwrap()],
        default_child_length: lengths(18),
        ..network("super")
    });
    world.ok(child("one", 1));
    world.ok(child("two", 1));
    let error = world.apply(child("three", 1)).result.unwrap_err();
    assert_eq!(error.code, ErrorCode::TooMany, "{error}");
    assert!(error.hint.contains("metalmesh quota set"), "{error}");
    world.ok(child("theirs", 2));
    world.ok(SetQuota {
        subject: QuotaSubject::Project(id(1)),
        limits: Limits {
            networks: Some(3),
            ..Limits::default()
        },
    });
    world.ok(child("three", 1));
}
