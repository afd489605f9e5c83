//! The desired state of firewalls: sets of rules and prefixes, and who is told of a change.

use control_state::life::{concerned_firewalls, firewall_desired};
use control_state::query::project_ips;
use control_state::*;
use proto_firewall::{NamePattern, RuleContent, RuleOwner, RuleSpec};

use crate::firewall_rules::{firewall, network, web, world, write};
use crate::networks::no_change;
use crate::world::*;

#[test]
fn a_firewall_gets_its_own_sets_and_those_of_its_private_networks() {
    let mut world = world();
    for owner in [RuleOwner::Tenant, RuleOwner::Operator] {
        world.ok(write(network(owner), web(80)));
        world.ok(write(firewall(owner), web(443)));
    }
    let desired = firewall_desired(&world.tables, id(1)).unwrap();
    let keys: Vec<RuleSetKey> = desired.sets.iter().map(|set| set.set().clone()).collect();
    let wanted = [
        firewall(RuleOwner::Operator),
        network(RuleOwner::Operator),
        firewall(RuleOwner::Tenant),
        network(RuleOwner::Tenant),
    ];
    assert_eq!(keys, wanted);
    assert_eq!(desired.networks.len(), 3, "the underlay too");
    // Rules of a network are for its own machines, under a name of their own.
    let prefixes = &world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .prefixes;
    let narrowed = &desired.sets[3].content().egress_policies[0];
    let from: Vec<String> = narrowed
        .from
        .iter()
        .map(|block| block.cidr.clone())
        .collect();
    let wanted: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
    assert_eq!(from, wanted);
    assert!(narrowed.name.starts_with("web."), "{}", narrowed.name);
    assert_eq!(firewall_desired(&world.tables, id(2)), None);
}

/// Eight firewalls of two projects. A change is looked at by those alone that it is for.
#[test]
fn a_change_of_a_network_concerns_its_own_firewalls_only() {
    let mut world = world();
    world.ok(child("other", 1));
    world.ok(child("foreign", 2));
    for number in 2..=8 {
        let (name, project) = match number {
            2 => ("private", 1),
            3..=5 => ("other", 1),
            _ => ("foreign", 2),
        };
        world.waiting(number);
        let networks = ["internet", name].map(|name| WantedNetwork {
            network: text(name),
            ips: vec![],
        });
        world.ok(AllocateMachine {
            kind: AllocationType::Firewall,
            project: id(project),
            image: text("firewall-3.0"),
            networks: networks.to_vec(),
            ..allocation_of(number)
        });
    }
    let concerned = |world: &mut World, op: Op| {
        let outcome = world.apply(op);
        outcome.result.unwrap();
        concerned_firewalls(&world.tables, &outcome.changes)
    };
    let ids = |numbers: &[u128]| numbers.iter().map(|number| id(*number)).collect();
    let rules = write(network(RuleOwner::Tenant), web(80));
    assert_eq!(concerned(&mut world, rules.into()), ids(&[1, 2]));
    let own = write(firewall(RuleOwner::Operator), web(80));
    assert_eq!(concerned(&mut world, own.into()), ids(&[1]));
    // An address in a network that all of them are in, of the project of three of them.
    let address = ip(77, "internet", 2);
    assert_eq!(concerned(&mut world, address.into()), ids(&[6, 7, 8]));
    let foreign = RuleSetKey {
        target: RuleTarget::Network(text("foreign")),
        owner: RuleOwner::Operator,
    };
    let rules = write(foreign, web(80));
    assert_eq!(concerned(&mut world, rules.into()), ids(&[6, 7, 8]));
}

/// Other projects have addresses in an external network, too: a machine must not send with these.
#[test]
fn a_firewall_gets_the_addresses_of_its_project_in_networks_of_others() {
    let mut world = world();
    let external = |world: &World| {
        let mut networks = firewall_desired(&world.tables, id(1)).unwrap().networks;
        networks.retain(|network| network.kind == NetworkType::External);
        assert_eq!(networks.len(), 1);
        networks.remove(0).addresses.unwrap()
    };
    let of_project = |world: &World, project: u128| {
        let rows = project_ips(&world.tables, id(project));
        let own = rows.filter(|ip| ip.network.as_str() == "internet");
        own.map(|ip| ip.ip).collect::<Vec<_>>()
    };
    let first = external(&world);
    world.ok(ip(77, "internet", 2));
    assert_eq!(external(&world), first, "of another project");
    world.ok(ip(78, "internet", 1));
    world.ok(ip(79, "internet", 1));
    let found = external(&world);
    let own = of_project(&world, 1);
    assert_eq!(own.len(), 3, "with the firewall's");
    let foreign = of_project(&world, 2);
    let has = |address: &std::net::IpAddr| found.iter().any(|net| net.contains(address));
    assert!(own.iter().all(has) && !foreign.iter().any(has), "{found:?}");
    for network in firewall_desired(&world.tables, id(1)).unwrap().networks {
        let is_external = network.kind == NetworkType::External;
        assert_eq!(network.addresses.is_some(), is_external);
    }
}

/// A firewall drops sources of no network: those of pods are the private network's.
#[test]
fn a_firewall_gets_the_prefixes_that_machines_of_its_project_announce() {
    let mut world = world();
    let private = world.tables.get::<Network>(&text("private")).unwrap();
    let (own, parent) = (private.prefixes.clone(), private.parent.clone().unwrap());
    let pods = "172.16.0.0/12".parse().unwrap();
    world.ok(UpdateNetwork {
        additional_announcable_cidrs: Some(vec![pods]),
        ..no_change(parent.as_str())
    });
    let desired = firewall_desired(&world.tables, id(1)).unwrap();
    for network in desired.networks {
        let has_pods = network.prefixes.contains(&pods);
        assert_eq!(has_pods, network.network == text("private"));
        if has_pods {
            assert_eq!(network.prefixes, [own.clone(), vec![pods]].concat());
        }
    }
}

fn name_servers(world: &World, number: u128) -> Vec<String> {
    let desired = firewall_desired(&world.tables, id(number)).unwrap();
    let servers = desired.name_servers.iter();
    servers.map(ToString::to_string).collect()
}

fn dns(servers: &[&str]) -> UpdatePartition {
    let servers = servers.iter().map(|server| server.parse().unwrap());
    UpdatePartition {
        labels: None,
        dns_servers: Some(servers.collect()),
        ..relabel(LabelsUpdate::Replace(Labels::new()))
    }
}

/// A machine keeps the servers that it was installed with; a firewall that got none follows its
/// partition.
#[test]
fn a_firewall_asks_its_own_name_servers_or_its_partitions() {
    let mut world = World::new();
    let names = world.with_firewall_networks();
    world.ok(dns(&[]));
    for (number, named) in [(1, vec![]), (2, vec!["9.9.9.9"]), (3, vec!["10.1.0.7"])] {
        world.waiting(number);
        let networks = names.map(|name| WantedNetwork {
            network: text(name),
            ips: vec![],
        });
        world.ok(AllocateMachine {
            kind: AllocationType::Firewall,
            image: text("firewall-3.0"),
            networks: networks.to_vec(),
            dns_servers: named.iter().map(|server| server.parse().unwrap()).collect(),
            ..allocation_of(number)
        });
    }
    let asked = |world: &World| [1, 2, 3].map(|number| name_servers(world, number).join(" "));
    assert_eq!(
        asked(&world),
        ["", "9.9.9.9", ""],
        "the third is in the underlay"
    );
    let named = |set: RuleSetKey| {
        let rule = RuleSpec {
            name: "api".into(),
            to_fqdns: vec![NamePattern {
                match_name: Some("api.example.com".into()),
                match_pattern: None,
            }],
            ..RuleSpec::default()
        };
        let content = RuleContent {
            egress_policies: vec![rule],
            ..RuleContent::default()
        };
        write(set, content)
    };
    let of_firewall = |number: u128| RuleSetKey {
        target: RuleTarget::Firewall(id(number)),
        owner: RuleOwner::Tenant,
    };
    world.ok(named(of_firewall(2)));
    for set in [of_firewall(1), network(RuleOwner::Operator)] {
        let refused = world.apply(named(set)).result.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidField);
        let message = refused.message;
        assert!(message.contains("has no name server"), "{message}");
        assert!(message.contains("--dns ADDRESS"), "{message}");
    }
    // Each firewall of the partition is told: `World::apply` compares.
    world.ok(dns(&["10.1.0.7", "192.0.2.53"]));
    let wanted = ["10.1.0.7 192.0.2.53", "9.9.9.9", "10.1.0.7"];
    assert_eq!(asked(&world), wanted, "the operator may name any");
    world.ok(named(of_firewall(1)));
    world.ok(named(network(RuleOwner::Operator)));
}
