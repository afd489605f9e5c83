//! Networks that a project shares with others.

use control_state::*;

use crate::evpn::{allocated, port, prefixes, world};
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
