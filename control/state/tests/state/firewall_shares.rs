//! The shares of operator and project in the bounds of a firewall.

use control_state::*;
use proto_firewall::{AddressBlock, NamePattern, PortSpec, RuleContent, RuleOwner, RuleSpec};

use crate::firewall_rules::{firewall, network, world, write};
use crate::world::*;

/// Entries of a rule of [`large`]: hosts × blocks of ports.
const ENTRIES: usize = 256 * 30 * 2;

/// So many rules with [`ENTRIES`] each.
fn large(rules: usize) -> RuleContent {
    let host = |number: u32| AddressBlock {
        cidr: format!("203.0.{}.{}/32", number / 128, number % 128 * 2),
        except: vec![],
    };
    let ports = |protocol: &str| PortSpec {
        protocol: Some(protocol.to_owned()),
        port: Some(1),
        end_port: Some(65_534),
        ..PortSpec::default()
    };
    let rule = |number: usize| RuleSpec {
        name: format!("r{number}"),
        to: (0..256).map(host).collect(),
        ports: ["TCP", "UDP"].map(ports).to_vec(),
        ..RuleSpec::default()
    };
    RuleContent {
        egress_policies: (0..rules).map(rule).collect(),
        ..RuleContent::default()
    }
}

fn named(names: std::ops::Range<usize>) -> RuleContent {
    let names: Vec<usize> = names.collect();
    let rules = names.chunks(64).enumerate();
    let rules = rules.map(|(index, names)| RuleSpec {
        name: format!("n{index}"),
        to_fqdns: names
            .iter()
            .map(|name| NamePattern {
                match_name: Some(format!("a{name}.example.com")),
                match_pattern: None,
            })
            .collect(),
        ..RuleSpec::default()
    });
    RuleContent {
        egress_policies: rules.collect(),
        ..RuleContent::default()
    }
}

fn refused_as_too_many(world: &mut World, op: SetFirewallRules) -> String {
    let refused = world.apply(op).result.unwrap_err();
    assert_eq!(refused.code, ErrorCode::TooMany, "{}", refused.message);
    refused.message
}

#[test]
fn the_sets_of_one_owner_together_fit_its_share_and_no_other_owner_counts() {
    let mut world = world();
    let (tenant, operator) = (RuleOwner::Tenant, RuleOwner::Operator);
    // 25 rules are 384,000 of the 393,216 of a project, 8 are 122,880 of the 131,072 of the operator.
    for (owner, rules, share) in [(tenant, 25, 393_216), (operator, 8, 131_072)] {
        world.ok(write(firewall(owner), large(rules)));
        let message = refused_as_too_many(&mut world, write(network(owner), large(1)));
        let together = (rules + 1) * ENTRIES;
        for part in [
            format!("the {owner}'s firewall rules of firewall"),
            format!("would have {together} entries, {} above", together - share),
            format!("the {owner}'s share of {share}"),
            format!("{} {}", firewall(owner), rules * ENTRIES),
            format!("{} {ENTRIES}", network(owner)),
        ] {
            assert!(message.contains(&part), "{part}: {message}");
        }
        // A smaller one makes room.
        world.ok(write(firewall(owner), large(rules - 1)));
        world.ok(write(network(owner), large(1)));
    }
}

#[test]
fn names_that_two_sets_have_count_once() {
    let mut world = world();
    let tenant = RuleOwner::Tenant;
    world.ok(write(firewall(tenant), named(0..384)));
    world.ok(write(network(tenant), named(100..164)));
    let message = refused_as_too_many(&mut world, write(network(tenant), named(321..385)));
    assert!(message.contains("385 DNS names, 1 above"), "{message}");
    world.ok(write(network(RuleOwner::Operator), named(900..1_000)));
}

/// A firewall may join networks whose sets are too much together: it refuses the last rules. The way
/// back is open.
#[test]
fn a_set_may_shrink_where_the_share_is_passed_already() {
    let mut world = world();
    world.ok(child("other", 1));
    let other = RuleSetKey {
        target: RuleTarget::Network(text("other")),
        owner: RuleOwner::Tenant,
    };
    world.ok(write(network(RuleOwner::Tenant), large(20)));
    world.ok(write(other.clone(), large(20)));
    world.waiting(2);
    let networks = ["internet", "private", "other"].map(|name| WantedNetwork {
        network: text(name),
        ips: vec![],
    });
    world.ok(AllocateMachine {
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: networks.to_vec(),
        ..allocation_of(2)
    });
    let message = refused_as_too_many(&mut world, write(other.clone(), large(21)));
    assert!(message.contains(&other.to_string()), "{message}");
    world.ok(write(other, large(19)));
}
