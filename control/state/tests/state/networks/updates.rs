//! Changes of networks.

use super::{external, namespaced, no_change};
use crate::world::*;
use control_state::*;

#[test]
fn updates() {
    let mut world = World::new();
    let prefixes = |nets: &[&str]| Some(nets.iter().map(|net| net.parse().unwrap()).collect());
    let cases = [
        (
            UpdateNetwork {
                prefixes: prefixes(&[]),
                ..no_change("super")
            },
            ErrorCode::InvalidField,
        ),
        (
            UpdateNetwork {
                prefixes: prefixes(&["10.9.0.0/16"]),
                ..no_change("super")
            },
            ErrorCode::StillInUse,
        ),
        (
            UpdateNetwork {
                prefixes: prefixes(&["10.9.0.0/16"]),
                ..no_change("private")
            },
            ErrorCode::NetworkFieldNotAllowed,
        ),
        (
            UpdateNetwork {
                lock: Lock::Client(ms(1)),
                ..no_change("super")
            },
            ErrorCode::Conflict,
        ),
        (
            UpdateNetwork {
                project: Some(id(2)),
                ..no_change("private")
            },
            ErrorCode::NotFound,
        ),
    ];
    for (op, code) in cases {
        assert_eq!(world.refused(op), code);
    }
    let more = prefixes(&["10.128.0.0/16", "10.130.0.0/16"]);
    world.ok(UpdateNetwork {
        prefixes: more,
        ..no_change("super")
    });
    let before = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .meta
        .clone();
    let lock = Lock::Client(before.updated_at);
    let named = UpdateNetwork {
        lock,
        name: Some("mine".into()),
        ..no_change("private")
    };
    let after = world.ok(named.clone()).network().unwrap();
    assert_eq!(after.meta.generation, before.generation + 1);
    assert!(after.meta.updated_at > before.updated_at);
    assert_eq!(
        world.refused(named),
        ErrorCode::Conflict,
        "the second of two writers"
    );
}

/// What an update that changes nothing says of every field.
fn unchanged(network: &Network) -> UpdateNetwork {
    UpdateNetwork {
        id: network.id.clone(),
        lock: Lock::Server,
        project: None,
        name: network.name.clone(),
        description: network.description.clone(),
        labels: None,
        prefixes: Some(network.prefixes.clone()),
        destination_prefixes: Some(network.destination_prefixes.clone()),
        default_child_length: Some(network.default_child_length),
        min_child_length: Some(network.min_child_length),
        nat: Some(network.nat),
        additional_announcable_cidrs: Some(network.additional_announcable_cidrs.clone()),
        force: false,
    }
}

#[test]
fn each_type_can_be_written_back() {
    let mut world = World::new();
    world.ok(CreateNetwork {
        destination_prefixes: vec!["0.0.0.0/0".parse().unwrap()],
        nat: Some(NatType::Ipv4Masquerade),
        ..external("internet", "192.0.2.0/24", 77)
    });
    world.ok(CreateNetwork {
        kind: NetworkType::Underlay,
        prefixes: vec!["198.51.100.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        ..network("underlay")
    });
    world.ok(namespaced("anyone"));
    for name in ["super", "private", "internet", "underlay", "anyone"] {
        let key = text(name);
        let before = world.tables.get::<Network>(&key).unwrap().clone();
        let after = world.ok(unchanged(&before)).network().unwrap();
        let same = Network {
            meta: before.meta.clone(),
            ..Network::clone(&after)
        };
        assert_eq!(same, *before, "{name}");
    }
    let internet = world.tables.get::<Network>(&text("internet")).unwrap();
    let other_version = UpdateNetwork {
        destination_prefixes: Some(vec!["::/0".parse().unwrap()]),
        ..unchanged(internet)
    };
    assert_eq!(world.refused(other_version), ErrorCode::InvalidField);
}
