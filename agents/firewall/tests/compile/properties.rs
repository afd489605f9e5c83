//! Random rules and random packets: the compiled table has the verdict of the rules, read plainly.

use agents_firewall::compile::{RuleCompiler, compile};
use agents_firewall::explain::{Resolved, with_addresses};
use agents_firewall::interpret::{FlowState, Packet, decide, decide_arriving};
use agents_firewall::model::{Chain, NftTable};
use agents_firewall::netlink::encode_expressions;
use agents_firewall::plan::{Change, Installed, InstalledChain, InstalledRule, plan, split};
use agents_firewall::rule::{Action, Direction, NameSelector, ProtocolMatch, Rule, RuleSet};
use ipnet::IpNet;
use proptest::prelude::*;

use crate::random_rules::{INTERFACES, packet, resolved, rule_set, tenant_rule};
use crate::source_networks::{is_inside, is_spoofed};

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
        // A mark of a network that is gone: it is in no set.
        for mark in [0, 0x0012_0000, 0x8000_0000] {
            packet.mark = mark;
            for state in [FlowState::Established, FlowState::Related] {
                packet.state = state;
                let accepted = decide(&table, &packet).accepted;
                prop_assert_eq!(accepted, !is_spoofed(&rules, &packet), "{:?}", packet);
            }
        }
        packet.state = FlowState::Invalid;
        prop_assert!(!decide(&table, &packet).accepted);
    }

    #[test]
    fn a_flow_belongs_to_the_networks_of_its_first_packet(
        rules in rule_set(),
        packet in packet(),
        other in prop::sample::select(INTERFACES.to_vec()),
        is_reply in any::<bool>(),
        state in prop::sample::select(vec![FlowState::Established, FlowState::Related]),
        others_bits in any::<u8>().prop_map(|byte| u32::from(byte) << 16),
    ) {
        let table = compile(&rules);
        let first = decide(&table, &Packet { mark: others_bits, ..packet.clone() });
        prop_assert_eq!(first.mark & 0xFF_0000, others_bits, "the bits of a VPN");
        if !first.accepted {
            return Ok(());
        }
        // No network has this interface: such a flow is not bound.
        let is_bound = packet.input != "eth9" && packet.output != "eth9";
        prop_assert_eq!(first.mark != others_bits, is_bound);
        let own = if is_reply { &packet.output } else { &packet.input };
        let later = Packet {
            input: other.to_owned(),
            state,
            // The program of a VPN writes its bits later, too.
            mark: first.mark ^ 0x01_0000,
            is_reply,
            ..packet.clone()
        };
        let belongs = if is_bound { own == other } else { !is_spoofed(&rules, &later) };
        let decision = decide(&table, &later);
        prop_assert_eq!(decision.accepted, belongs, "{:?}", later);
        let counter = if belongs { "established" } else { "spoofed" };
        prop_assert_eq!(decision.counters.last().map(String::as_str), Some(counter));
    }

    #[test]
    fn a_flow_without_an_answer_is_not_taken_over(
        rules in rule_set(),
        packet in packet(),
        other in prop::sample::select(INTERFACES.to_vec()),
        output in prop::sample::select(INTERFACES.to_vec()),
    ) {
        let table = compile(&rules);
        let first = decide(&table, &packet);
        let next = Packet {
            input: other.to_owned(),
            output: output.to_owned(),
            mark: first.mark,
            ..packet.clone()
        };
        let decision = decide(&table, &next);
        let alone = decide(&table, &Packet { mark: 0, ..next.clone() });
        if first.mark == 0 || other == packet.input {
            // As if it was the first one, also if its way is another one now.
            prop_assert_eq!(&decision.counters, &alone.counters, "{:?}", next);
            prop_assert_eq!(decision.mark == alone.mark, alone.mark != 0 || first.mark == 0);
        } else {
            prop_assert!(!decision.accepted, "{:?}", next);
            prop_assert_eq!(decision.mark, first.mark, "{:?}", next);
            prop_assert_eq!(decision.counters.last().map(String::as_str), Some("spoofed"));
        }
    }

    #[test]
    fn a_fragment_has_a_source_of_its_network(rules in rule_set(), packet in packet()) {
        let table = compile(&rules);
        prop_assert!(decide_arriving(&table, &packet).counters.is_empty());
        let decision = decide_arriving(&table, &Packet { is_fragment: true, ..packet.clone() });
        let by = |output: &str| is_spoofed(&rules, &Packet { output: output.to_owned(), ..packet.clone() });
        // On the way out a source may be that of a machine with an external address: not to where such
        // an address, or one inside, leads.
        let leads_inside = by("vrf-in") && is_inside(&rules, packet.destination);
        let is_checked = packet.input.starts_with("vrf-");
        if is_checked && (by("vrf-out") || leads_inside) {
            prop_assert!(!decision.accepted && decision.counters == ["spoofed"], "{:?}", packet);
        } else {
            prop_assert!(decision.accepted, "{:?}", packet);
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
