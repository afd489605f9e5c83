//! The operator's rules of a shared network are for every firewall in it; a project's are for its own.

use control_state::life::{concerned_firewalls, firewall_desired};
use control_state::query::firewalls_of_set;
use control_state::*;
use proto_firewall::{PortSpec, RuleContent, RuleOwner, RuleSpec};
use proto_types::{MachineId, ProjectId};

use crate::world::*;

/// A network of a project that others may join.
fn shared(name: &str, project: u128) -> CreateNetwork {
    CreateNetwork {
        kind: NetworkType::ChildShared,
        project: Some(id(project)),
        prefixes: vec![],
        default_child_length: ChildLength::default(),
        ..network(name)
    }
}

fn set(name: &str, owner: RuleOwner) -> RuleSetKey {
    RuleSetKey {
        target: RuleTarget::Network(text(name)),
        owner,
    }
}

/// A write for project 2, or by the operator.
fn write(set: RuleSetKey, content: RuleContent) -> SetFirewallRules {
    SetFirewallRules {
        project: (set.owner == RuleOwner::Tenant).then(|| id(2)),
        set,
        content,
        comment: String::new(),
        expected: None,
    }
}

/// So many policies, each with a description of a KiB.
pub(crate) fn policies(count: usize) -> RuleContent {
    let rule = |number: usize| RuleSpec {
        name: format!("p{number}"),
        description: "x".repeat(1000),
        ports: vec![PortSpec {
            port: Some(443),
            ..PortSpec::default()
        }],
        ..RuleSpec::default()
    };
    RuleContent {
        egress_policies: (0..count).map(rule).collect(),
        ..RuleContent::default()
    }
}

fn wanted(number: u128, names: &[&str]) -> AllocateMachine {
    let networks = names.iter().map(|name| WantedNetwork {
        network: text(name),
        ips: vec![],
    });
    AllocateMachine {
        machine: Some(id(number)),
        partition: None,
        size: None,
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: networks.collect(),
        ..allocation_of(number)
    }
}

/// A network that project 2 shares, another one of project 1, and machines 1 and 2 on offer.
fn world() -> World {
    let mut world = World::new();
    world.with_firewall_networks();
    world.ok(shared("storage", 2));
    world.ok(child("backup", 1));
    world.waiting(1);
    world.waiting(2);
    world
}

fn sets(world: &World, number: u128) -> Vec<RuleSetKey> {
    let desired = firewall_desired(&world.tables, id(number)).unwrap();
    desired.sets.iter().map(|set| set.set().clone()).collect()
}

#[test]
fn the_operators_rules_of_a_shared_network_reach_its_guests() {
    let mut world = world();
    // Of project 1: the guest, and one that is not in the network.
    world.ok(wanted(1, &["internet", "private", "storage"]));
    world.ok(wanted(2, &["internet", "private"]));
    let (operator, tenant) = (
        set("storage", RuleOwner::Operator),
        set("storage", RuleOwner::Tenant),
    );
    let owner: ProjectId = id(2);
    let of = |world: &World, set: &RuleSetKey| firewalls_of_set(&world.tables, set, owner);
    assert_eq!(of(&world, &operator), [id(1)]);
    assert_eq!(of(&world, &tenant), []);

    let outcome = world.apply(write(tenant, policies(1)));
    assert!(outcome.result.is_ok());
    assert!(concerned_firewalls(&world.tables, &outcome.changes).is_empty());
    assert_eq!(sets(&world, 1), []);
    let outcome = world.apply(write(operator.clone(), policies(1)));
    assert!(outcome.result.is_ok());
    let woken = concerned_firewalls(&world.tables, &outcome.changes);
    assert_eq!(woken, [id(1)].into());
    assert_eq!(sets(&world, 1), std::slice::from_ref(&operator));
    assert_eq!(sets(&world, 2), []);
    // They are about the shared network alone, and go with it.
    let desired = firewall_desired(&world.tables, id(1)).unwrap();
    let content = desired.sets[0].content();
    let storage = world.tables.get::<Network>(&text("storage")).unwrap();
    let from = &content.egress_policies[0].from;
    assert_eq!(from.len(), storage.prefixes.len());
    assert_eq!(from[0].cidr, storage.prefixes[0].to_string());
    world.ok(DeleteFirewallRules {
        set: operator,
        project: None,
        expected: None,
    });
    assert_eq!(sets(&world, 1), []);
}

/// Policies of more than 1.5 MB. A set may have 2 MiB, and the operator's of a firewall 4.
pub(crate) const LARGE: usize = 1_500;

#[test]
fn the_operators_rules_of_several_projects_fit_one_firewall() {
    let mut world = world();
    world.ok(wanted(1, &["internet", "private", "storage", "backup"]));
    let operator = |name: &str| set(name, RuleOwner::Operator);
    world.ok(write(operator("storage"), policies(LARGE)));
    world.ok(write(operator("backup"), policies(LARGE)));
    let refused = world.apply(write(operator("private"), policies(LARGE)));
    let refused = refused.result.unwrap_err();
    assert_eq!(refused.code, ErrorCode::TooMany);
    let firewall = id::<MachineId>(1).to_string();
    assert!(refused.message.contains(&firewall), "{}", refused.message);
    world.ok(write(operator("private"), policies(100)));
}

#[test]
fn a_firewall_does_not_join_networks_with_too_many_rules() {
    let mut world = world();
    let operator = |name: &str| set(name, RuleOwner::Operator);
    for name in ["storage", "backup", "private"] {
        world.ok(write(operator(name), policies(LARGE)));
    }
    let all = wanted(1, &["internet", "private", "storage", "backup"]);
    assert_eq!(world.refused(all), ErrorCode::TooMany);
    world.ok(wanted(1, &["internet", "private", "storage"]));
}
