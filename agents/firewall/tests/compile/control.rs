//! The explanation of control and that of the agent are one: both name the same rule of the same
//! object for a flow through the rules that control sends.

use std::collections::BTreeSet;
use std::net::IpAddr;

use agents_firewall::admit::admit_objects;
use agents_firewall::explain::{Question, Resolved, explain};
use agents_firewall::source::ControllerObjects;
use agents_firewall::source::metal::objects;
use proptest::prelude::*;
use proto_firewall::{
    AddressBlock, Flow, PlacedRules, PortSpec, RuleContent, RuleOwner, RuleScope, RuleSpec,
    ServiceSpec, checked,
};
use proto_mesh::{FirewallDesired, FirewallNetwork, FirewallRuleSet};

/// Prefixes of the tenant, of the internet, and of both.
const PREFIXES: [&str; 6] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "203.0.113.0/24",
    "203.0.113.7/32",
    "0.0.0.0/0",
    "fd00::/8",
];
/// Addresses in and outside of them.
const ADDRESSES: [&str; 6] = [
    "10.1.0.5",
    "10.9.0.5",
    "203.0.113.7",
    "198.51.100.1",
    "fd00::5",
    "2001:db8::1",
];
const PROTOCOLS: [&str; 5] = ["TCP", "UDP", "SCTP", "ICMP", "ICMPv6"];
const NUMBERS: [u8; 6] = [6, 17, 132, 1, 58, 47];

fn blocks() -> impl Strategy<Value = Vec<AddressBlock>> {
    let block = proptest::sample::select(&PREFIXES[..]).prop_map(|cidr| AddressBlock {
        cidr: cidr.to_owned(),
        except: match cidr {
            "10.0.0.0/8" => vec!["10.9.0.0/16".to_owned()],
            _ => vec![],
        },
    });
    proptest::collection::vec(block, 0..3)
}

fn ports() -> impl Strategy<Value = Vec<PortSpec>> {
    let port = (
        proptest::sample::select(&PROTOCOLS[..]),
        1_u32..6,
        0_u32..3,
        any::<bool>(),
    );
    let port = port.prop_map(|(protocol, port, length, is_whole)| {
        let is_icmp = protocol.starts_with("ICMP");
        PortSpec {
            protocol: Some(protocol.to_owned()),
            port: (!is_icmp && !is_whole).then_some(port),
            end_port: (!is_icmp && !is_whole).then_some(port + length),
            icmp_type: (is_icmp && !is_whole).then_some(port),
        }
    });
    proptest::collection::vec(port, 0..3)
}

/// A rule whose parts have a family in common: others are refused by the agent.
fn rule() -> impl Strategy<Value = RuleSpec> {
    (blocks(), blocks(), ports(), any::<bool>()).prop_map(|(from, to, ports, log)| RuleSpec {
        from,
        to,
        ports,
        log,
        ..RuleSpec::default()
    })
}

fn named(rules: Vec<RuleSpec>) -> Vec<RuleSpec> {
    let rules = rules.into_iter().enumerate();
    rules
        .map(|(index, rule)| RuleSpec {
            name: format!("r{index}"),
            ..rule
        })
        .collect()
}

fn operator() -> impl Strategy<Value = RuleContent> {
    let action = proptest::sample::select(&["accept", "drop", "log"][..]);
    let direction = proptest::sample::select(&["ingress", "egress", "any"][..]);
    let rule = (rule(), action, direction).prop_map(|(rule, action, direction)| RuleSpec {
        action: Some(action.to_owned()),
        direction: Some(direction.to_owned()),
        ..rule
    });
    proptest::collection::vec(rule, 0..5).prop_map(|rules| RuleContent {
        operator_rules: named(rules),
        ..RuleContent::default()
    })
}

fn tenant() -> impl Strategy<Value = RuleContent> {
    let rules = || proptest::collection::vec(rule(), 0..3);
    let service = (1_u32..6, any::<bool>()).prop_map(|(port, has)| {
        let service = ServiceSpec {
            name: "shop".into(),
            load_balancer_ips: vec!["203.0.113.7".into()],
            ports: vec![PortSpec {
                port: Some(port),
                ..PortSpec::default()
            }],
            ..ServiceSpec::default()
        };
        has.then_some(service)
    });
    (rules(), rules(), service).prop_map(|(egress, ingress, service)| RuleContent {
        egress_policies: named(egress),
        ingress_policies: named(ingress),
        load_balancers: service.into_iter().collect(),
        ..RuleContent::default()
    })
}

fn desired(contents: &[RuleContent]) -> FirewallDesired {
    let network = |id: &str, kind: &str, vrf, prefixes: &[&str]| FirewallNetwork {
        network: id.to_owned(),
        r#type: kind.to_owned(),
        vrf,
        prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
        masquerade: false,
        addresses: None,
    };
    let set = |content: &RuleContent| FirewallRuleSet {
        content: content.to_json(),
        ..FirewallRuleSet::default()
    };
    FirewallDesired {
        networks: vec![
            network("tenant", "child", 42, &["10.0.0.0/8", "fd00::/8"]),
            network("internet", "external", 104, &[]),
        ],
        sets: contents.iter().map(set).collect(),
        ..FirewallDesired::default()
    }
}

/// Control finds the rule of a counter that a firewall reports by its name alone.
#[test]
fn counters_have_the_names_that_control_knows() {
    let rule = |name: &str, action: Option<&str>| RuleSpec {
        name: name.to_owned(),
        action: action.map(str::to_owned),
        ..RuleSpec::default()
    };
    let content = RuleContent {
        operator_rules: vec![rule("no", Some("drop")), rule("", Some("log"))],
        egress_policies: vec![rule("web", None)],
        ingress_policies: vec![rule("", None)],
        load_balancers: vec![ServiceSpec {
            name: "shop".to_owned(),
            load_balancer_ips: vec!["203.0.113.7".to_owned()],
            ports: vec![PortSpec {
                port: Some(443),
                ..PortSpec::default()
            }],
            ..ServiceSpec::default()
        }],
        ..RuleContent::default()
    };
    let objects = objects(&desired(std::slice::from_ref(&content))).unwrap();
    let admitted = admit_objects(&ControllerObjects {
        firewall: &objects.firewall,
        cwnp: Some(&objects.cwnp),
        service: &objects.service,
    });
    assert_eq!(admitted.problems, []);
    let counted = admitted.rules.rules().map(|rule| rule.id.counter());
    let scope = RuleScope {
        owner: RuleOwner::Operator,
        network: None,
    };
    let (rules, _) = checked(&content, scope);
    let known = rules.iter().map(|rule| rule.list.counter(&rule.name));
    let known: BTreeSet<String> = known.collect();
    assert_eq!(counted.collect::<BTreeSet<_>>(), known);
    assert_eq!(known.len(), 5);
    let service = &content.load_balancers[0];
    assert_eq!(rules[4].name, service.full_name());
}

proptest! {
    #[test]
    fn control_and_agent_name_the_same_rule(
        operator in operator(),
        tenant in tenant(),
        from in proptest::sample::select(&ADDRESSES[..]),
        to in proptest::sample::select(&ADDRESSES[..]),
        protocol in proptest::sample::select(&NUMBERS[..]),
        port in 1_u16..8,
    ) {
        let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
        prop_assume!(from.is_ipv4() == to.is_ipv4());
        let objects = objects(&desired(&[operator.clone(), tenant.clone()])).unwrap();
        let admitted = admit_objects(&ControllerObjects {
            firewall: &objects.firewall,
            cwnp: Some(&objects.cwnp),
            service: &objects.service,
        });
        // Both refuse rules whose parts have no family in common.
        let refused = |problem: &agents_firewall::admit::Problem| problem.field == "from";
        prop_assert!(admitted.problems.iter().all(refused), "{:?}", admitted.problems);
        let mut refused = 0;
        let question = Question { from, to, protocol, port, input: None, output: None };
        let agents = explain(&admitted.rules, &question, &Resolved::new());

        let owners = [RuleOwner::Operator, RuleOwner::Tenant];
        let sets: Vec<PlacedRules> = [operator, tenant].iter().zip(owners).map(|(content, owner)| {
            let (rules, wrong) = checked(content, RuleScope { owner, network: None });
            assert!(wrong.iter().all(|wrong| wrong.field == "from"), "{wrong:?}");
            refused += wrong.len();
            PlacedRules { rules, allowed_egress: vec![], allowed_ingress: vec![] }
        }).collect();
        prop_assert_eq!(refused, admitted.problems.len());
        let is_private = |address: IpAddr| {
            let nets = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse::<ipnet::IpNet>().unwrap());
            nets.iter().any(|net| net.contains(&address))
        };
        let flow = Flow {
            from, to, protocol, port,
            is_ingress: is_private(to),
            is_egress: is_private(from),
        };
        let controls = proto_firewall::explain(&sets, &flow);
        prop_assert_eq!(agents.accepted, controls.is_accepted, "{}", agents.reason);
        // Among policies the order decides nothing but which one is named.
        let agents_object = agents.rule.map(|rule| format!("{} {}", rule.controller, rule.object));
        let controls_rule = controls.rule.map(|(set, rule)| &sets[set].rules[rule]);
        let is_operators = controls.rule.is_some_and(|(set, _)| set == 0);
        if is_operators {
            let same_action = agents_object.as_deref().is_some_and(|object| object.starts_with("firewall "));
            prop_assert!(same_action, "{:?} {:?}", agents_object, controls_rule);
        } else {
            let is_tenants = agents_object.is_none_or(|object| !object.starts_with("firewall "));
            prop_assert!(is_tenants, "{:?}", controls_rule);
        }
    }
}
