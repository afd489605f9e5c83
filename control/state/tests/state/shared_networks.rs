//! Networks that a project shares with others.

use control_state::*;

use crate::evpn::{allocated, port, prefixes, world};
use crate::networks::no_change;
use crate::world::*;

/// Address spaces of projects overlap. In a network that another project shares, an address from a
/// machine's own space would take the traffic of the machine that has it there.
#[test]
fn in_a_shared_network_an_address_of_the_own_space_is_not_announced() {
    let mut world = world();
    world.ok(CreateNetwork {
        kind: NetworkType::SuperNamespaced,
        partition: None,
        ..network("spaces")
    });
    let shared = CreateNetwork {
        kind: NetworkType::ChildShared,
        project: Some(id(1)),
        partition: None,
        parent: Some(text("spaces")),
        prefixes: vec![],
        default_child_length: ChildLength::default(),
        ..network("shared")
    };
    world.ok(shared);
    let own = CreateChildNetwork {
        partition: None,
        parent: Some(text("spaces")),
        ..child("own", 2)
    };
    world.ok(own);
    let prefixes_of = |world: &World, name: &str| {
        let found = world.tables.get::<Network>(&text(name)).unwrap();
        found.prefixes.clone()
    };
    assert_eq!(prefixes_of(&world, "shared"), prefixes_of(&world, "own"));
    for (number, project) in [(1, 1), (2, 2)] {
        world.waiting(number);
        let wanted = AllocateMachine {
            project: id(project),
            networks: vec![WantedNetwork {
                network: text("shared"),
                ips: vec![],
            }],
            ..allocation_of(number)
        };
        allocated(&mut world, number, wanted);
    }
    let [victim, attacker] = [1, 2].map(|number| {
        let allocation = world.machine(number).allocation.clone().unwrap();
        allocation.networks[0].ips[0]
    });
    world.ok(CreateIp {
        ip: Some(victim),
        ..ip(11, "own", 2)
    });
    let passing = prefixes(&port(&world, "leaf1", "swp2"));
    assert_eq!(passing, [format!("{attacker}/32")]);
}

/// Prefixes that an administrator lets the children of a super network announce, such as those of
/// pods, belong to the project that owns the child.
#[test]
fn announcable_prefixes_reach_only_the_owners_of_the_children() {
    let mut world = world();
    world.ok(UpdateNetwork {
        additional_announcable_cidrs: Some(vec!["172.16.0.0/12".parse().unwrap()]),
        ..no_change("super")
    });
    world.ok(CreateNetwork {
        kind: NetworkType::ChildShared,
        project: Some(id(1)),
        prefixes: vec![],
        default_child_length: ChildLength::default(),
        ..network("shared")
    });
    world.ok(CreateNetwork {
        kind: NetworkType::Super,
        partition: None,
        project: Some(id(2)),
        prefixes: vec!["10.9.0.0/16".parse().unwrap()],
        ..network("other")
    });
    world.ok(CreateChildNetwork {
        partition: None,
        parent: Some(text("other")),
        ..child("theirs", 2)
    });
    for (number, project, networks) in [(1, 1, "shared"), (2, 2, "shared"), (3, 2, "theirs")] {
        world.waiting(number);
        let wanted = AllocateMachine {
            project: id(project),
            networks: vec![WantedNetwork {
                network: text(networks),
                ips: vec![],
            }],
            ..allocation_of(number)
        };
        allocated(&mut world, number, wanted);
    }
    let passing = |port_name: &str| prefixes(&port(&world, "leaf1", port_name)).join(" ");
    assert_eq!(passing("swp1"), "10.128.4.0/22 172.16.0.0/12", "the owner");
    // Single addresses of a project pass on each of its ports.
    assert_eq!(passing("swp2"), "10.9.0.1/32 10.128.4.2/32", "a guest");
    assert_eq!(passing("swp3"), "10.9.0.0/22 10.128.4.2/32", "elsewhere");
}

/// Neither a child nor the network of a project is the way around.
#[test]
fn a_tenant_sets_no_announcable_prefixes() {
    let mut world = world();
    let made = world.ok(child("new", 1)).network().unwrap();
    assert!(made.additional_announcable_cidrs.is_empty());
    let cidrs = Some(vec!["0.0.0.0/0".parse().unwrap()]);
    let of_child = UpdateNetwork {
        additional_announcable_cidrs: cidrs.clone(),
        ..no_change("new")
    };
    let by_tenant = UpdateNetwork {
        project: Some(id(1)),
        ..of_child.clone()
    };
    assert_eq!(world.refused(by_tenant), ErrorCode::PermissionDenied);
    assert_eq!(world.refused(of_child), ErrorCode::NetworkFieldNotAllowed);
    world.ok(CreateNetwork {
        kind: NetworkType::Super,
        partition: None,
        project: Some(id(1)),
        prefixes: vec!["10.9.0.0/16".parse().unwrap()],
        ..network("own")
    });
    let of_super = UpdateNetwork {
        additional_announcable_cidrs: cidrs,
        ..no_change("own")
    };
    let by_tenant = UpdateNetwork {
        project: Some(id(1)),
        ..of_super.clone()
    };
    assert_eq!(world.refused(by_tenant), ErrorCode::PermissionDenied);
    world.ok(of_super);
}
