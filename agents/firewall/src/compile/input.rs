//! Packets for the firewall itself.
//!
//! The chain drops what no rule accepts. It accepts what the fabric needs (ND, BGP, VXLAN, DHCP),
//! pings at a bounded rate, and management by its own interfaces and prefixes. A private network
//! reaches nothing but the DNS proxy, if there is one.

use super::access::{self, AccessGroup, InputInterfaces};
use super::epoch;
use super::flow_numbers::FlowNumbers;
use super::flows;
use super::frame::{self, by_interface, by_state, rule};
use super::keys;
use super::layer::{self, PREFIX_DROPPED, log};
use super::layers::Layer;
use super::source_rule::{INPUT_SPOOFED, SourceCheck};
use super::sources;
use crate::model::{BaseChain, Chain, Expression, MetaKey, NftRule, NftTable, Verdict};
use crate::rule::{Action, Direction, RuleSet, protocol_number};

/// Base chain of packets for the firewall itself.
pub const INPUT: &str = "input";
/// Counters of packets for the firewall itself that are dropped.
pub const INPUT_DROPS: [&str; 4] = [
    INPUT_SPOOFED,
    "input/invalid",
    "input/private",
    "input/dropped",
];
/// Pings that are answered, per second, of all senders together.
pub const PINGS_PER_SECOND: u32 = 100;

/// The chain while it is built.
struct InputChain<'a> {
    table: &'a mut NftTable,
    chain: Chain,
    /// Part of the names of sets and chains: packets that are in the middle of old rules find the old
    /// sets.
    epoch: String,
}

/// Adds the chain with its sets, maps and counters.
pub(super) fn add(table: &mut NftTable, rules: &RuleSet, numbers: &FlowNumbers) {
    let mut input = InputChain {
        table,
        chain: Chain {
            base: Some(BaseChain::Input),
            rules: Vec::new(),
        },
        epoch: epoch::of_input(rules),
    };
    input.add_interfaces(rules);
    input.add_states();
    let check = SourceCheck::input(rules);
    let checked = sources::add(input.table, rules, &check);
    // Before packets of known flows: those of a network have its sources, too.
    input.chain.rules.extend(checked);
    let (established, spoofed) = (input.counter("established"), input.counter("spoofed"));
    let flows = flows::add_own(input.table, rules, numbers, &established, &spoofed);
    input.chain.rules.extend(flows.known);
    input.chain.rules.push(flows.unbound);
    input.chain.rules.extend(flows.first);
    input.add_ping(true);
    input.add_ping(false);
    input.jump(&access::needed(), None);
    input.jump(&access::underlay(rules), Some("underlay"));
    input.jump(&access::management(rules), Some("management"));
    input.jump(&access::private(rules), Some("private"));
    // Whatever source a tenant writes into its packets: the rules below are not for it.
    let mut from_tenant = by_interface(MetaKey::InputName, &input.set("private"));
    from_tenant.push(input.count("private"));
    input
        .chain
        .rules
        .push(rule(from_tenant, Some(Verdict::Drop)));
    input.jump(&access::managers(rules), None);
    input
        .chain
        .rules
        .push(rule(log(PREFIX_DROPPED).to_vec(), None));
    let rest = vec![input.count("dropped")];
    input.chain.rules.push(rule(rest, Some(Verdict::Drop)));
    let chain = input.chain;
    table.chains.insert(INPUT.to_owned(), chain);
}

impl InputChain<'_> {
    fn set(&self, name: &str) -> String {
        format!("input-{name}-interfaces.{}", self.epoch)
    }

    /// Adds a counter.
    fn counter(&mut self, name: &str) -> String {
        let counter = format!("input/{name}");
        self.table.counters.insert(counter.clone());
        counter
    }

    fn count(&mut self, name: &str) -> Expression {
        Expression::Count(self.counter(name))
    }

    fn add_interfaces(&mut self, rules: &RuleSet) {
        let interfaces = InputInterfaces::of(rules);
        for (name, interfaces) in [
            ("underlay", interfaces.underlay),
            ("private", interfaces.private),
            ("management", interfaces.management),
        ] {
            let set = self.set(name);
            frame::add_interfaces(self.table, &set, &interfaces);
        }
    }

    /// Loopback, and what connection tracking refuses.
    fn add_states(&mut self) {
        let mut loopback = vec![
            Expression::Meta {
                key: MetaKey::InputName,
                register: 0,
            },
            Expression::Equal {
                register: 0,
                value: frame::interface_key("lo"),
            },
        ];
        loopback.push(self.count("loopback"));
        let invalid = by_state(frame::STATE_INVALID, &self.counter("invalid"));
        self.chain.rules.extend([
            rule(loopback, Some(Verdict::Accept)),
            rule(invalid, Some(Verdict::Drop)),
        ]);
    }

    /// Answers pings of a family. Those above the rate meet the rules after it.
    fn add_ping(&mut self, is_ipv4: bool) {
        let (protocol, request) = if is_ipv4 {
            (protocol_number::ICMP, 8)
        } else {
            (protocol_number::ICMP6, 128)
        };
        let mut expressions = keys::icmp_type(protocol, request).to_vec();
        expressions.extend([
            Expression::LimitPackets(PINGS_PER_SECOND),
            self.count("ping"),
        ]);
        self.chain
            .rules
            .push(rule(expressions, Some(Verdict::Accept)));
    }

    /// Jumps to the rules of a group, if it has any; of packets from a set of interfaces, or of all.
    fn jump(&mut self, group: &AccessGroup, interfaces: Option<&str>) {
        if group.rules.is_empty() {
            return;
        }
        let layer = Layer {
            name: format!("input-{}.{}", group.name, self.epoch),
            action: Action::Accept,
            direction: Direction::Any,
            rules: group.rules.iter().collect(),
            is_extra: false,
            has_names: false,
        };
        layer::add(self.table, &layer);
        let from = interfaces.map(|name| by_interface(MetaKey::InputName, &self.set(name)));
        let jump = Verdict::Jump(layer.name);
        let made: NftRule = rule(from.unwrap_or_default(), Some(jump));
        self.chain.rules.push(made);
    }
}
