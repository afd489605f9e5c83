//! Random rules and random packets: the compiled table has the verdict of the rules, read plainly.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use agents_firewall::compile::{RuleCompiler, compile};
use agents_firewall::explain::{Resolved, with_addresses};
use agents_firewall::interpret::{FlowState, Packet, decide, decide_arriving};
use agents_firewall::model::{Chain, NftTable};
use agents_firewall::netlink::encode_expressions;
use agents_firewall::plan::{Change, Installed, InstalledChain, InstalledRule, plan, split};
use agents_firewall::rule::{
    Action, Controller, Direction, NameSelector, ProtocolMatch, Rule, RuleId, RuleSet, prefixes,
    protocol_number as number,
};
use ipnet::IpNet;
use proptest::prelude::*;

use crate::source_networks::{is_spoofed, networks};

/// Addresses of few bits, so that rules and packets meet.
fn address() -> impl Strategy<Value = IpAddr> {
    (any::<bool>(), 0_u8..16).prop_map(|(is_ipv4, low)| {
        if is_ipv4 {
            IpAddr::V4(Ipv4Addr::new(10, 0, 0, low))
        } else {
            IpAddr::V6(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, u16::from(low)))
        }
    })
}

fn prefix() -> impl Strategy<Value = IpNet> {
    (address(), 0_u8..6).prop_map(|(address, cut)| {
        let (whole, all) = if address.is_ipv4() { (32, 0) } else { (128, 0) };
        let len = if cut == 5 { all } else { whole - cut };
        IpNet::new(address, len).unwrap().trunc()
    })
}

fn list_of_prefixes() -> impl Strategy<Value = Vec<IpNet>> {
    prop_oneof![
        Just(prefixes::any()),
        prop::collection::vec(prefix(), 1..4).prop_map(|all| prefixes::merged(&all)),
    ]
}

fn protocol() -> impl Strategy<Value = ProtocolMatch> {
    let transport = prop_oneof![Just(number::TCP), Just(number::UDP), Just(number::SCTP)];
    let ports = (transport.clone(), 0_u16..20, 0_u16..20).prop_map(|(protocol, first, more)| {
        ProtocolMatch::Ports {
            protocol,
            first,
            last: first + more,
        }
    });
    let icmp = prop_oneof![Just(number::ICMP), Just(number::ICMP6)];
    let kinds =
        (icmp, 0_u8..4).prop_map(|(protocol, kind)| ProtocolMatch::IcmpType { protocol, kind });
    prop_oneof![
        1 => Just(ProtocolMatch::Any),
        1 => transport.prop_map(ProtocolMatch::Protocol),
        1 => Just(ProtocolMatch::Protocol(number::ICMP)),
        5 => ports,
        2 => kinds,
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::Any),
        Just(Direction::Ingress),
        Just(Direction::Egress),
    ]
}

/// Names of a few, so that rules share some.
fn names() -> impl Strategy<Value = Vec<NameSelector>> {
    let all = ["a.com", "b.com", "*.com"].map(|text| NameSelector::pattern(text).unwrap());
    prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::sample::subsequence(all.to_vec(), 1..3),
    ]
}

/// Addresses that names were resolved to, by the sets of names.
fn resolved() -> impl Strategy<Value = Resolved> {
    let all = ["a.com", "b.com", "*.com"].map(|text| NameSelector::pattern(text).unwrap());
    let addresses = prop::collection::vec(prop::collection::btree_set(address(), 0..6), 3);
    addresses.prop_map(move |sets| {
        let mut resolved = Resolved::new();
        for (name, addresses) in all.iter().zip(sets) {
            for address in addresses {
                let set = name.set(address.is_ipv4());
                resolved.entry(set).or_default().insert(address);
            }
        }
        resolved
    })
}

/// A rule of a tenant, which may have names as its destinations.
fn tenant_rule() -> impl Strategy<Value = Rule> {
    (rule(Just(Action::Accept)), names()).prop_map(|(mut rule, names)| {
        if !names.is_empty() {
            rule.destinations = prefixes::any();
            rule.names = names;
        }
        rule
    })
}

fn rule(action: impl Strategy<Value = Action>) -> impl Strategy<Value = Rule> {
    let protocols = prop::collection::vec(protocol(), 1..3);
    let lists = (list_of_prefixes(), list_of_prefixes(), protocols);
    (lists, direction(), action, any::<bool>()).prop_map(|(lists, direction, action, log)| {
        let (sources, destinations, protocols) = lists;
        Rule {
            id: RuleId {
                controller: Controller::Cwnp,
                object: String::new(),
                rule: 0,
            },
            direction,
            sources,
            destinations,
            names: Vec::new(),
            protocols,
            action,
            log,
        }
    })
}

fn rule_set() -> impl Strategy<Value = RuleSet> {
    let action = prop_oneof![Just(Action::Accept), Just(Action::Drop), Just(Action::Log)];
    let operator = prop::collection::vec(rule(action), 0..6);
    let tenant = prop::collection::vec(tenant_rule(), 0..6);
    (networks(), operator, tenant).prop_map(|(networks, mut operator, mut tenant)| {
        for (index, rule) in operator.iter_mut().chain(&mut tenant).enumerate() {
            rule.id.object = format!("rule-{index}");
        }
        RuleSet {
            networks,
            operator,
            tenant,
            ..RuleSet::default()
        }
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let names = ["vrf-in", "vrf-in2", "vrf-out", "lan0"];
    let interface = move || prop::sample::select(names.to_vec()).prop_map(str::to_owned);
    let low = (0_u8..16, 0_u8..16, any::<bool>());
    (low, 0_u8..6, 0_u16..40, interface(), interface()).prop_map(
        |((source, destination, is_ipv4), protocol, port, input, output)| {
            let address = |low: u8| -> IpAddr {
                if is_ipv4 {
                    Ipv4Addr::new(10, 0, 0, low).into()
                } else {
                    Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, u16::from(low)).into()
                }
            };
            let protocol = match protocol {
                0 | 1 => number::TCP,
                2 => number::UDP,
                3 => number::SCTP,
                4 if is_ipv4 => number::ICMP,
                4 => number::ICMP6,
                _ => 47,
            };
            let is_icmp = protocol == number::ICMP || protocol == number::ICMP6;
            Packet {
                source: address(source),
                destination: address(destination),
                protocol,
                port: if is_icmp { port % 5 } else { port },
                input,
                output,
                state: FlowState::New,
                mark: 0,
                is_reply: false,
                is_fragment: false,
            }
        },
    )
}

/// The plain meaning of a rule.
fn matches(rule: &Rule, packet: &Packet, resolved: &Resolved) -> bool {
    let destination = packet.destination;
    let is_resolved = |name: &NameSelector| {
        let set = resolved.get(&name.set(destination.is_ipv4()));
        set.is_some_and(|addresses| addresses.contains(&destination))
    };
    let names = rule.names.is_empty() || rule.names.iter().any(is_resolved);
    let is_there = |nets: &[IpNet], address| nets.iter().any(|net| net.contains(&address));
    let direction = match rule.direction {
        Direction::Any => true,
        Direction::Ingress => packet.output.starts_with("vrf-in"),
        Direction::Egress => packet.input.starts_with("vrf-in"),
    };
    let protocol = rule.protocols.iter().any(|protocol| match *protocol {
        ProtocolMatch::Any => true,
        ProtocolMatch::Protocol(number) => number == packet.protocol,
        ProtocolMatch::Ports {
            protocol,
            first,
            last,
        } => protocol == packet.protocol && (first..=last).contains(&packet.port),
        ProtocolMatch::IcmpType { protocol, kind } => {
            protocol == packet.protocol && u16::from(kind) == packet.port
        }
    });
    direction
        && names
        && protocol
        && is_there(&rule.sources, packet.source)
        && is_there(&rule.destinations, packet.destination)
}

/// The plain verdict of rules.
fn verdict(rules: &RuleSet, packet: &Packet, resolved: &Resolved) -> bool {
    if is_spoofed(rules, packet) {
        return false;
    }
    let decisive = |rule: &&Rule| rule.action != Action::Log && matches(rule, packet, resolved);
    rules
        .rules()
        .find(decisive)
        .is_some_and(|rule| rule.action == Action::Accept)
}

/// The chain as the kernel dumps it.
fn dumped(chain: &Chain) -> InstalledChain {
    let rules = (1..).zip(&chain.rules).map(|(handle, rule)| {
        let mut expressions = Vec::new();
        for attribute in encode_expressions(&rule.expressions) {
            attribute.encode(&mut expressions);
        }
        InstalledRule {
            handle,
            expressions,
        }
    });
    InstalledChain {
        base: chain.base,
        is_well_placed: true,
        rules: rules.collect(),
    }
}

/// Makes a table the desired one by plans and what they record, as the agent does without reading.
fn apply_from_memory(installed: &mut Installed, desired: &NftTable) {
    let parts = split(plan(installed, desired), desired);
    for part in [parts.decisive, parts.cleanup] {
        installed.record(&part);
    }
    let chains = desired.chains.iter();
    installed.chains = chains
        .map(|(name, chain)| (name.clone(), dumped(chain)))
        .collect();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_table_has_the_verdict_of_the_rules(
        rules in rule_set(),
        resolved in resolved(),
        packets in prop::collection::vec(packet(), 30),
    ) {
        let table = with_addresses(compile(&rules), &resolved);
        for packet in &packets {
            let decision = decide(&table, packet);
            prop_assert_eq!(decision.accepted, verdict(&rules, packet, &resolved), "{:?}", packet);
            let last = decision.counters.last().unwrap();
            let decided = rules.rules().find(|rule| rule.id.counter() == *last);
            match decided {
                Some(rule) => prop_assert!(matches(rule, packet, &resolved), "{last} for {packet:?}"),
                None if is_spoofed(&rules, packet) => prop_assert_eq!(last, "spoofed"),
                None => prop_assert_eq!(last, "dropped"),
            }
        }
    }

    #[test]
    fn established_packets_pass_and_invalid_ones_do_not(
        rules in rule_set(),
        mut packet in packet(),
    ) {
        let table = compile(&rules);
        packet.state = FlowState::Established;
        prop_assert!(decide(&table, &packet).accepted);
        packet.state = FlowState::Related;
        prop_assert!(decide(&table, &packet).accepted);
        packet.state = FlowState::Invalid;
        prop_assert!(!decide(&table, &packet).accepted);
    }

    #[test]
    fn a_flow_belongs_to_the_networks_of_its_first_packet(
        rules in rule_set(),
        packet in packet(),
        other in prop::sample::select(vec!["vrf-in", "vrf-in2", "vrf-out", "lan0"]),
        is_reply in any::<bool>(),
        state in prop::sample::select(vec![FlowState::Established, FlowState::Related]),
    ) {
        let table = compile(&rules);
        let first = decide(&table, &packet);
        if !first.accepted {
            return Ok(());
        }
        // No network has this interface: such a flow is not bound.
        let is_bound = packet.input != "lan0" && packet.output != "lan0";
        prop_assert_eq!(first.mark != 0, is_bound);
        let own = if is_reply { &packet.output } else { &packet.input };
        let belongs = !is_bound || own == other;
        let later = Packet {
            input: other.to_owned(),
            state,
            mark: first.mark,
            is_reply,
            ..packet.clone()
        };
        let decision = decide(&table, &later);
        prop_assert_eq!(decision.accepted, belongs, "{:?}", later);
        let counter = if belongs { "established" } else { "spoofed" };
        prop_assert_eq!(decision.counters.last().map(String::as_str), Some(counter));
    }

    #[test]
    fn a_fragment_has_a_source_of_its_network(rules in rule_set(), packet in packet()) {
        let table = compile(&rules);
        prop_assert!(decide_arriving(&table, &packet).counters.is_empty());
        let decision = decide_arriving(&table, &Packet { is_fragment: true, ..packet.clone() });
        let by = |output: &str| is_spoofed(&rules, &Packet { output: output.to_owned(), ..packet.clone() });
        // On the way out a source may be that of a machine with an external address.
        if packet.input != "lan0" && by("vrf-out") {
            prop_assert!(!decision.accepted && decision.counters == ["spoofed"], "{:?}", packet);
        } else {
            prop_assert!(decision.accepted || by("vrf-in"), "{:?}", packet);
        }
    }

    #[test]
    fn a_plan_from_nothing_never_removes(rules in rule_set()) {
        let table = compile(&rules);
        let changes = plan(&Installed::default(), &table);
        prop_assert_eq!(changes.first(), Some(&Change::AddTable));
        let removes = |change: &Change| matches!(change,
            Change::RemoveTable | Change::RemoveSet(_) | Change::RemoveChain(_)
            | Change::RemoveCounter(_) | Change::RemoveElements { .. } | Change::RemoveRule { .. });
        prop_assert!(!changes.iter().any(removes));
    }
}

proptest! {
    // Each case compiles a dozen tables.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn what_changes_record_is_the_desired_table(versions in prop::collection::vec(rule_set(), 1..5)) {
        let mut installed = Installed::default();
        for rules in &versions {
            let table = compile(rules);
            apply_from_memory(&mut installed, &table);
            prop_assert_eq!(plan(&installed, &table), vec![]);
            prop_assert_eq!(&installed.counters, &table.counters);
            prop_assert_eq!(&installed.sets, &table.sets);
        }
    }

    #[test]
    fn a_compiler_that_remembers_has_the_same_result(
        rules in rule_set(),
        changes in prop::collection::vec((tenant_rule(), 0_usize..8, 0_usize..4), 1..12),
    ) {
        let mut compiler = RuleCompiler::default();
        let mut rules = rules;
        for (number, (mut rule, at, what)) in changes.into_iter().enumerate() {
            prop_assert_eq!(compiler.compile(&rules), &compile(&rules));
            let tenant = &mut rules.tenant;
            let at = at.min(tenant.len());
            rule.id.object = format!("changed-{number}");
            match what {
                0 if at < tenant.len() => {
                    tenant.remove(at);
                }
                1 if at < tenant.len() => {
                    rule.id = tenant[at].id.clone();
                    tenant[at] = rule;
                }
                2 => rules.operator.clear(),
                _ => tenant.insert(at, rule),
            }
        }
        prop_assert_eq!(compiler.compile(&rules), &compile(&rules));
    }
}
