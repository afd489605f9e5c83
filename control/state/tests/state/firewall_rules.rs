//! Sets of firewall rules: who may write them, and their revisions.

use control_state::life::firewall_desired;
use control_state::*;
use proto_firewall::{
    AddressBlock, EgressAddresses, PortSpec, RateLimit, RuleContent, RuleOwner, RuleSpec,
};

use crate::world::*;

/// A world in which project 1 has machine 1 as a firewall.
pub(crate) fn world() -> World {
    let mut world = World::new();
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
        ..allocation_of(1)
    });
    world
}

pub(crate) fn firewall(owner: RuleOwner) -> RuleSetKey {
    let target = RuleTarget::Firewall(id(1));
    RuleSetKey { target, owner }
}

pub(crate) fn network(owner: RuleOwner) -> RuleSetKey {
    let target = RuleTarget::Network(text("private"));
    RuleSetKey { target, owner }
}

pub(crate) fn web(port: u32) -> RuleContent {
    RuleContent {
        egress_policies: vec![RuleSpec {
            name: "web".into(),
            ports: vec![PortSpec {
                port: Some(port),
                ..PortSpec::default()
            }],
            ..RuleSpec::default()
        }],
        ..RuleContent::default()
    }
}

pub(crate) fn write(set: RuleSetKey, content: RuleContent) -> SetFirewallRules {
    SetFirewallRules {
        project: (set.owner == RuleOwner::Tenant).then(|| id(1)),
        set,
        content,
        comment: String::new(),
        expected: None,
    }
}

pub(crate) fn row(world: &World, set: &RuleSetKey) -> Option<FirewallRuleSet> {
    let found = world.tables.get::<FirewallRuleSet>(set);
    found.map(|row| FirewallRuleSet::clone(row))
}

#[test]
fn another_project_finds_nothing() {
    let mut world = world();
    for set in [firewall(RuleOwner::Tenant), network(RuleOwner::Tenant)] {
        let mut op = write(set, web(80));
        op.project = Some(id(2));
        assert_eq!(world.refused(op), ErrorCode::NotFound);
    }
    let target = RuleTarget::Network(text("internet"));
    let owner = RuleOwner::Operator;
    let outside = write(RuleSetKey { target, owner }, web(80));
    assert_eq!(world.refused(outside), ErrorCode::NotFound, "not private");
    let mut world = World::new();
    world.running(1, 1);
    let set = firewall(RuleOwner::Tenant);
    assert_eq!(
        world.refused(write(set, web(80))),
        ErrorCode::NotFound,
        "no firewall"
    );
}

/// The contents that are refused, with a part of the message.
fn refused_contents() -> Vec<(RuleSetKey, RuleContent, &'static str)> {
    let tenant = || firewall(RuleOwner::Tenant);
    let rule = |rule: RuleSpec| RuleContent {
        egress_policies: vec![rule],
        ..RuleContent::default()
    };
    let named = |name: &str| RuleSpec {
        name: name.into(),
        ..RuleSpec::default()
    };
    let from = |cidr: &str| RuleSpec {
        from: vec![AddressBlock {
            cidr: cidr.into(),
            except: vec![],
        }],
        ..named("x")
    };
    let drop = RuleSpec {
        action: Some("drop".into()),
        ..named("x")
    };
    let operators = RuleContent {
        operator_rules: vec![drop.clone()],
        ..RuleContent::default()
    };
    let snat = |network: &str, ip: &str| RuleContent {
        egress_addresses: vec![EgressAddresses {
            network_id: network.into(),
            ips: vec![ip.into()],
        }],
        ..RuleContent::default()
    };
    let rate = |network: &str| RuleContent {
        rate_limits: vec![RateLimit {
            network_id: network.into(),
            rate: 1,
        }],
        ..RuleContent::default()
    };
    let twice = RuleContent {
        egress_policies: vec![named("x"), named("x")],
        ..RuleContent::default()
    };
    vec![
        (
            tenant(),
            rule(named("Web")),
            "cwnp egress/Web: name: \"Web\" is not a name",
        ),
        (
            tenant(),
            rule(from("10.0.0.1/8")),
            "cwnp egress/x: from[0].cidr: 10.0.0.1/8 has bits",
        ),
        (tenant(), rule(drop), "action: a policy only accepts"),
        (tenant(), web(0), "ports[0].port: 0 is not a port"),
        (
            tenant(),
            twice,
            "another object of the list has the same name",
        ),
        (tenant(), operators, "rules: only the operator may have it"),
        (tenant(), rate("internet"), "rateLimits: only the operator"),
        (tenant(), snat("private", "10.0.0.1"), "no external network"),
        (
            tenant(),
            snat("internet", "203.0.113.99"),
            "the project has no address 203.0.113.99",
        ),
        (
            firewall(RuleOwner::Operator),
            rate("other"),
            "the firewall has no network \"other\"",
        ),
        (
            network(RuleOwner::Tenant),
            rule(from("192.0.2.0/24")),
            "is outside of the network",
        ),
        (
            network(RuleOwner::Tenant),
            snat("internet", "1.1.1.1"),
            "rules of a network cannot",
        ),
    ]
}

#[test]
fn what_is_wrong_is_named_with_field_and_remedy() {
    let mut world = world();
    for (set, content, wanted) in refused_contents() {
        let refused = world.apply(write(set, content)).result.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidField, "{refused:?}");
        assert!(
            refused.message.contains(wanted),
            "{wanted}: {}",
            refused.message
        );
    }
    assert_eq!(world.tables.all::<FirewallRuleSet>().count(), 0);
}

#[test]
fn an_address_that_the_project_gave_back_leaves_the_nat() {
    let mut world = world();
    let address: CreateIp = ip(7, "internet", 1);
    let made = world.ok(address).ip().unwrap();
    let content = RuleContent {
        egress_addresses: vec![EgressAddresses {
            network_id: "internet".into(),
            ips: vec![made.ip.to_string()],
        }],
        ..RuleContent::default()
    };
    world.ok(write(firewall(RuleOwner::Tenant), content));
    let nat = |world: &World| {
        let desired = firewall_desired(&world.tables, id(1)).unwrap();
        desired.sets[0].content().egress_addresses.len()
    };
    assert_eq!(nat(&world), 1);
    world.ok(DeleteIp {
        key: made.key(),
        project: id(1),
        underlay: false,
    });
    assert_eq!(nat(&world), 0);
}

fn report(applied: u64) -> ReportFirewall {
    ReportFirewall {
        machine: id(1),
        allocation: id(1),
        applied_term: 1,
        applied_generation: applied,
        applied_sets: [(firewall(RuleOwner::Tenant).to_string(), 1)].into(),
        refused_rules: vec![],
        error: None,
        agent_version: None,
        routes: None,
        update: None,
    }
}

#[test]
fn rules_and_reports_end_with_the_allocation() {
    let mut world = world();
    world.ok(write(firewall(RuleOwner::Tenant), web(80)));
    world.ok(write(firewall(RuleOwner::Tenant), web(81)));
    world.ok(write(network(RuleOwner::Tenant), web(80)));
    let stale = ReportFirewall {
        allocation: id(9),
        ..report(1)
    };
    assert_eq!(world.refused(stale), ErrorCode::MachineForeign);
    assert!(query::firewall_report_matters(&world.tables, &report(1)));
    world.ok(report(1));
    assert!(!query::firewall_report_matters(&world.tables, &report(1)));
    assert!(query::firewall_report_matters(&world.tables, &report(2)));
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert!(world.machine(1).allocation.is_none());
    assert_eq!(row(&world, &firewall(RuleOwner::Tenant)), None);
    assert_eq!(world.tables.all::<FirewallRuleHistory>().count(), 0);
    assert_eq!(world.tables.all::<FirewallStatus>().count(), 0);
    assert!(row(&world, &network(RuleOwner::Tenant)).is_some());
    world.ok(DeleteNetwork {
        id: text("private"),
        project: Some(id(1)),
    });
    assert_eq!(row(&world, &network(RuleOwner::Tenant)), None);
}

#[test]
fn the_operators_budget_is_not_the_projects() {
    let mut world = world();
    let text = "x".repeat(1000);
    let rule = |number: usize| RuleSpec {
        name: format!("r{number}"),
        description: text.clone(),
        ..RuleSpec::default()
    };
    let large = |rules: usize| RuleContent {
        egress_policies: (0..rules).map(rule).collect(),
        ..RuleContent::default()
    };
    let set = firewall(RuleOwner::Tenant);
    assert_eq!(
        world.refused(write(set.clone(), large(2_100))),
        ErrorCode::TooMany
    );
    world.ok(write(set, large(1_900)));
    world.ok(write(network(RuleOwner::Tenant), large(1_900)));
    world.ok(write(firewall(RuleOwner::Operator), large(1_900)));
}

#[test]
fn what_the_firewall_would_refuse_is_refused_when_it_is_written() {
    let mut world = world();
    let block = |cidr: &str, except: Vec<String>| AddressBlock {
        cidr: cidr.into(),
        except,
    };
    let rule = |index: usize, from: Vec<AddressBlock>, to: Vec<AddressBlock>| RuleSpec {
        name: format!("r{index}"),
        from,
        to,
        ..RuleSpec::default()
    };
    let policies = |rules: Vec<RuleSpec>| RuleContent {
        egress_policies: rules,
        ..RuleContent::default()
    };
    // The most exceptions of a block, in twenty rules of sixteen blocks.
    let hole = |hole: u32| format!("{:x}:{hole:x}::{hole:x}/128", hole * 7 + 1);
    let holes = block("::/0", (0..256).map(hole).collect());
    let scattered = |index| rule(index, vec![], vec![holes.clone(); 16]);
    // 16,384 entries each, the most of a rule.
    let hosts = |third: u32| -> Vec<AddressBlock> {
        (0..128)
            .map(|host| block(&format!("10.0.{third}.{}/32", host * 2), vec![]))
            .collect()
    };
    let full = |index| rule(index, hosts(1), hosts(2));
    for (content, expected) in [
        (policies((0..20).map(scattered).collect()), "it needs 2"),
        (policies((0..59).map(full).collect()), "all together 393216"),
    ] {
        let op = write(firewall(RuleOwner::Tenant), content);
        let error = world.apply(op).result.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidField);
        assert!(error.message.contains(expected), "{}", error.message);
    }
    world.ok(write(
        firewall(RuleOwner::Tenant),
        policies((0..24).map(full).collect()),
    ));
}
