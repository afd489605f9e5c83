//! Management addresses of switches: by them the boot server knows the relay of a leaf.

use control_state::*;

use crate::world::*;

fn at(name: &str, address: &str) -> RegisterSwitch {
    RegisterSwitch {
        management_ip: Some(address.parse().unwrap()),
        ..leaf(name, "rack-1")
    }
}

fn change(name: &str) -> UpdateSwitch {
    UpdateSwitch {
        id: text(name),
        lock: Lock::Server,
        description: None,
        replace_mode: None,
        management_ip: None,
        management_user: None,
        console_command: None,
        labels: None,
    }
}

fn relays(world: &World) -> Vec<(String, String)> {
    let relays = life::boot_relays(&world.tables, &text(PARTITION));
    let relays = relays.iter();
    relays
        .map(|relay| (relay.switch.to_string(), relay.address.to_string()))
        .collect()
}

fn relay(name: &str, address: &str) -> (String, String) {
    (name.to_owned(), address.to_owned())
}

/// The boot server takes neither of two relays with one address: one leaf would silence the other.
#[test]
fn the_address_of_a_switch_stays_with_it() {
    let mut world = upgraded();
    world.ok(at("leaf1", "10.0.0.1"));
    let error = world.apply(at("leaf2", "10.0.0.1")).result.unwrap_err();
    assert_eq!(error.code, ErrorCode::AlreadyExists);
    assert!(error.to_string().contains("leaf1"), "{error}");
    assert!(error.hint.contains("management_ip"), "{error}");
    world.ok(at("leaf2", "10.0.0.2"));
    assert_eq!(
        world.refused(at("leaf2", "10.0.0.1")),
        ErrorCode::AlreadyExists
    );
    let by_admin = UpdateSwitch {
        management_ip: Some("10.0.0.1".parse().unwrap()),
        ..change("leaf2")
    };
    assert_eq!(world.refused(by_admin), ErrorCode::AlreadyExists);
    world.ok(at("leaf1", "10.0.0.1"));
    assert_eq!(
        relays(&world),
        [relay("leaf1", "10.0.0.1"), relay("leaf2", "10.0.0.2")]
    );
    // Another partition has another boot server.
    world.ok(CreatePartition(partition("elsewhere")));
    world.ok(RegisterSwitch {
        partition: text("elsewhere"),
        ..at("leaf3", "10.0.0.1")
    });
    // A switch that moves away leaves its address.
    world.ok(at("leaf1", "10.0.0.3"));
    world.ok(at("leaf2", "10.0.0.1"));
}

#[test]
fn a_replaced_switch_leaves_its_address_to_its_successor() {
    let mut world = upgraded();
    world.ok(at("leaf1", "10.0.0.1"));
    world.ok(at("leaf2", "10.0.0.2"));
    world.running(1, 1);
    world.ok(UpdateSwitch {
        replace_mode: Some(ReplaceMode::Replace),
        ..change("leaf1")
    });
    let before = world.clone();
    // Under its own name.
    world.ok(at("leaf1", "10.0.0.1"));
    world = before;
    // Under another one, to which its cables are then moved.
    world.ok(at("leaf9", "10.0.0.1"));
    assert_eq!(
        relays(&world),
        [relay("leaf2", "10.0.0.2"), relay("leaf9", "10.0.0.1")]
    );
    world.ok(MigrateSwitch {
        from: text("leaf1"),
        to: text("leaf9"),
    });
    assert_eq!(world.machine(1).links[0].switch, text("leaf9"));
    world.ok(UpdateSwitch {
        replace_mode: Some(ReplaceMode::Operational),
        ..change("leaf1")
    });
    assert_eq!(
        world.refused(at("leaf1", "10.0.0.1")),
        ErrorCode::AlreadyExists
    );
}

/// Registered before control refused it, or by agents of the published stack.
#[test]
fn of_two_switches_with_one_address_the_first_relays() {
    let mut world = World::new();
    world.ok(at("spine", "10.0.0.1"));
    world.later(1);
    world.ok(at("leaf2", "10.0.0.1"));
    assert_eq!(relays(&world), [relay("spine", "10.0.0.1")]);
    world.ok(tests_support::announcement(1));
    for known in ["leaf2", "spine"] {
        world.ok(at(known, "10.0.0.1"));
    }
    world.later(1);
    world.ok(RegisterSwitch {
        hears: false,
        ..at("leaf3", "10.0.0.1")
    });
    assert_eq!(relays(&world), [relay("spine", "10.0.0.1")]);
}
