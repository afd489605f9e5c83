//! Faults of firewalls that only a replacement ends: the access of their project, and no agent.

use control_state::query::{FirewallFault, FirewallRole, firewall_faults, firewall_standing};
use control_state::*;
use tests_support::announcement;

use crate::firewall_standby::report;
use crate::world::*;

/// Machine 1 as a firewall of project 1, not installed yet, with these keys and user data. Every
/// control node knows `level`.
fn firewall(level: u32, keys: &[&str], userdata: &str) -> World {
    let mut world = World::new();
    world.ok(AnnounceNode {
        level,
        ..announcement(1)
    });
    let names = world.with_firewall_networks();
    world.waiting(1);
    let networks = names.map(|name| WantedNetwork {
        network: text(name),
        ips: vec![],
    });
    world.ok(AllocateMachine {
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: networks.to_vec(),
        ssh_public_keys: keys.iter().map(ToString::to_string).collect(),
        userdata: userdata.into(),
        ..allocation_of(1)
    });
    world
}

fn faults(world: &World) -> Vec<FirewallFault> {
    firewall_faults(&world.tables, id(1))
}

#[test]
fn a_firewall_from_before_may_have_keys_of_its_project() {
    const KEY: &str = "ssh-ed25519 AAAA me";
    let tenant: &[FirewallFault] = &[FirewallFault::TenantAccess];
    let cases: [(u32, &[&str], &str, &[FirewallFault]); 5] = [
        (1, &[KEY], "", tenant),
        (1, &[], "I2Nsb3VkLWNvbmZpZwo=", tenant),
        (1, &[], "", &[]),
        // Every control node refuses those of a project: these are an administrator's.
        (2, &[KEY], "I2Nsb3VkLWNvbmZpZwo=", &[]),
        (2, &[], "", &[]),
    ];
    for (level, keys, userdata, wanted) in cases {
        let world = firewall(level, keys, userdata);
        assert_eq!(faults(&world), wanted, "{level} {keys:?} {userdata}");
    }
    // Other machines are for their project.
    let mut world = World::new();
    world.running(1, 1);
    assert_eq!(faults(&world), []);
    assert_eq!(firewall_faults(&world.tables, id(9)), []);
}

#[test]
fn keys_that_an_administrator_replaces_are_no_fault() {
    let keys = |world: &mut World| {
        world.ok(UpdateMachine {
            id: id(1),
            lock: Lock::Server,
            project: id(1),
            description: None,
            labels: None,
            ssh_public_keys: Some(vec!["ssh-ed25519 BBBB admin".into()]),
        });
    };
    let cases: [(&str, &[FirewallFault]); 2] = [
        ("", &[]),
        // The project's script may have left anything in the system.
        ("I2Nsb3VkLWNvbmZpZwo=", &[FirewallFault::TenantAccess]),
    ];
    for (userdata, wanted) in cases {
        let mut world = firewall(1, &["ssh-ed25519 AAAA me"], userdata);
        world.ok(AnnounceNode {
            level: 2,
            ..announcement(1)
        });
        keys(&mut world);
        assert_eq!(faults(&world), wanted, "{userdata}");
    }
}

#[test]
fn a_firewall_of_the_published_hammer_has_no_agent() {
    let mut world = firewall(1, &[], "");
    world.event(1, EventKind::Installing);
    world.ok(InstallDone {
        // The published contract has no field for it.
        primary_disk: String::new(),
        ..installed(1, 1)
    });
    world.bmc(BmcAction::BootDisk, None);
    world.event(1, EventKind::BootingNewKernel);
    world.phone_home(1);
    assert_eq!(world.phase(1), Phase::Running);
    assert_eq!(faults(&world), [FirewallFault::NoAgent]);
    let standing = firewall_standing(&world.tables, id(1)).unwrap();
    assert_eq!(standing.role, FirewallRole::Withdrawn);
    assert!(standing.reason.contains("brings no agent"), "{standing:?}");
    // An agent that somebody installed by hand speaks for itself.
    world.ok(report(1, 7, None));
    assert_eq!(faults(&world), []);
    let standing = firewall_standing(&world.tables, id(1)).unwrap();
    assert_eq!(standing.role, FirewallRole::Active);
}
