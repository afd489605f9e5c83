//! Networks and addresses.

mod children;
mod fields;
mod numbers;
mod updates;

use crate::world::*;
use control_state::*;

pub(crate) fn dual() -> CreateNetwork {
    CreateNetwork {
        prefixes: vec![
            "10.128.0.0/14".parse().unwrap(),
            "fd00::/48".parse().unwrap(),
        ],
        default_child_length: ChildLength {
            v4: Some(22),
            v6: Some(64),
        },
        min_child_length: ChildLength {
            v4: Some(20),
            v6: None,
        },
        ..network("super")
    }
}

/// No networks yet.
pub(crate) fn bare() -> World {
    let mut world = World::new();
    world.ok(DeleteNetwork {
        id: text("private"),
        project: Some(id(1)),
    });
    world.ok(DeleteNetwork {
        id: text("super"),
        project: None,
    });
    // What these had is as good as new.
    world.tick(600_000);
    world
}

pub(crate) fn namespaced(name: &str) -> CreateNetwork {
    CreateNetwork {
        kind: NetworkType::SuperNamespaced,
        partition: None,
        ..network(name)
    }
}

pub(crate) fn external(name: &str, prefix: &str, vrf: u32) -> CreateNetwork {
    CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec![prefix.parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(vrf),
        ..network(name)
    }
}

/// An update of a network by an administrator that changes nothing.
pub(crate) fn no_change(name: &str) -> UpdateNetwork {
    UpdateNetwork {
        id: text(name),
        lock: Lock::Server,
        project: None,
        name: None,
        description: None,
        labels: None,
        prefixes: None,
        destination_prefixes: None,
        default_child_length: None,
        min_child_length: None,
        nat: None,
        additional_announcable_cidrs: None,
        force: false,
    }
}
