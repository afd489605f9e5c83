//! The parts of the table that every configuration has.

use super::accounting;
use super::flow_numbers::FlowNumbers;
use super::flows;
use super::layer::{PREFIX_DROPPED, log};
use super::layers::Layer;
use super::source_rule::SourceCheck;
use super::sources;
use crate::model::{
    BaseChain, Chain, Element, Expression, MetaKey, NftRule, NftSet, NftTable, SetSpec, Verdict,
};
use crate::rule::{Direction, Network, NetworkKind, RuleSet};

/// Base chain of forwarded packets.
pub const FORWARD: &str = "forward";
/// Base chain of source NAT.
pub const POSTROUTING: &str = "postrouting";
/// Set of the interfaces of private networks; its epoch follows.
pub const PRIVATE_INTERFACES: &str = "private-interfaces";
/// Counter of packets that no rule accepted.
pub const DROPPED: &str = "dropped";
/// Counter of packets of flows that were accepted before, and of related ones.
pub const ESTABLISHED: &str = "established";
/// Counter of packets that connection tracking refuses.
pub const INVALID: &str = "invalid";

/// Bits of the state of a flow, as the kernel has them.
pub(super) const STATE_INVALID: u32 = 1;
pub(super) const STATE_ESTABLISHED: u32 = 2;
pub(super) const STATE_RELATED: u32 = 4;
pub(super) const STATE_NEW: u32 = 8;
/// Begin of the names of the sets of networks' interfaces; the id follows.
pub(super) const INTERFACES: &str = "interfaces/";
/// Length of an interface name in the kernel, bytes.
const INTERFACE_LEN: usize = 16;

/// Adds the counters and the sets of interfaces.
pub(super) fn declare(table: &mut NftTable, rules: &RuleSet, epoch: &str) {
    for counter in [DROPPED, ESTABLISHED, INVALID] {
        table.counters.insert(counter.to_owned());
    }
    let private = rules
        .networks
        .iter()
        .filter(|network| network.kind == NetworkKind::Private);
    let names = private.flat_map(|network| &network.interfaces);
    add_interfaces(table, &private_interfaces(epoch), names);
    for network in &rules.networks {
        add_interfaces(table, &interfaces(network), &network.interfaces);
    }
}

fn private_interfaces(epoch: &str) -> String {
    format!("{PRIVATE_INTERFACES}.{epoch}")
}

/// Name of the set of a network's interfaces.
pub(super) fn interfaces(network: &Network) -> String {
    format!("{INTERFACES}{}", network.id)
}

/// Name of the counter of what a network sends above a limit.
pub(super) fn rate_limit(network: &Network) -> String {
    format!("rate-limit/{}", network.id)
}

/// Adds a set of interfaces.
pub(super) fn add_interfaces<'a>(
    table: &mut NftTable,
    set: &str,
    names: impl IntoIterator<Item = &'a String>,
) {
    let elements = names
        .into_iter()
        .map(|name| (interface_key(name), Element::Member))
        .collect();
    let spec = SetSpec::members(SetSpec::INTERFACE, 16);
    table.sets.insert(set.to_owned(), NftSet { spec, elements });
}

/// The name of an interface as packets have it.
pub(super) fn interface_key(name: &str) -> Vec<u8> {
    let mut key = name.as_bytes().to_vec();
    key.resize(INTERFACE_LEN, 0);
    key
}

/// Adds the base chain: rate limits, bound flows, the check of sources, other known flows, the mark of
/// new flows, the layers, and the drop.
pub(super) fn add_forward(
    table: &mut NftTable,
    rules: &RuleSet,
    layers: &[Layer<'_>],
    epoch: &str,
    numbers: &FlowNumbers,
) {
    let private = private_interfaces(epoch);
    let mut chain = Chain {
        base: Some(BaseChain::Forward),
        rules: Vec::new(),
    };
    chain.rules.extend(accounting::add(table, rules, &private));
    for limit in &rules.rate_limits {
        let Some(network) = rules.networks.iter().find(|net| net.id == limit.network) else {
            continue;
        };
        let counter = rate_limit(network);
        table.counters.insert(counter.clone());
        let bytes = u64::from(limit.mebibytes_per_second) * 1024 * 1024;
        let mut expressions = by_interface(MetaKey::InputName, &interfaces(network));
        expressions.push(Expression::OverBytes(bytes));
        expressions.push(Expression::Count(counter));
        chain.rules.push(rule(expressions, Some(Verdict::Drop)));
    }
    let check = SourceCheck::forward(rules);
    let check_sources = sources::add(table, rules, &check);
    let flows = flows::add(table, rules, numbers, check.spoofed);
    chain.rules.extend(flows.known);
    let invalid = by_state(STATE_INVALID, INVALID);
    chain.rules.push(rule(invalid, Some(Verdict::Drop)));
    chain.rules.extend(check_sources);
    chain.rules.push(flows.unbound);
    chain.rules.extend(flows.first);
    for layer in layers {
        let expressions = match layer.direction {
            Direction::Ingress => by_interface(MetaKey::OutputName, &private),
            Direction::Egress => by_interface(MetaKey::InputName, &private),
            Direction::Any => Vec::new(),
        };
        let jump = Verdict::Jump(layer.name.clone());
        chain.rules.push(rule(expressions, Some(jump)));
    }
    chain.rules.push(rule(log(PREFIX_DROPPED).to_vec(), None));
    // Not the policy alone: while a base chain is created, the kernel calls it with the policy
    // accept for a moment.
    let count = vec![Expression::Count(DROPPED.to_owned())];
    chain.rules.push(rule(count, Some(Verdict::Drop)));
    table.chains.insert(FORWARD.to_owned(), chain);
}

/// Matches packets whose interface is in a set.
pub(super) fn by_interface(key: MetaKey, set: &str) -> Vec<Expression> {
    vec![
        Expression::Meta { key, register: 0 },
        Expression::Lookup {
            set: set.to_owned(),
            register: 0,
            destination: None,
        },
    ]
}

/// Matches and counts packets of flows in one of these states.
pub(super) fn by_state(bits: u32, counter: &str) -> Vec<Expression> {
    let mut expressions = in_state(bits);
    expressions.push(Expression::Count(counter.to_owned()));
    expressions
}

/// Matches packets of flows in one of these states.
pub(super) fn in_state(bits: u32) -> Vec<Expression> {
    let mut expressions = vec![Expression::CtState { register: 0 }];
    expressions.extend(any_of(bits.to_ne_bytes().to_vec()));
    expressions
}

/// Matches if register 0 has one of these bits.
pub(super) fn any_of(bits: Vec<u8>) -> [Expression; 2] {
    let register = 0;
    let value = vec![0; bits.len()];
    let mask = bits;
    [
        Expression::Mask { register, mask },
        Expression::NotEqual { register, value },
    ]
}

pub(super) fn rule(mut expressions: Vec<Expression>, verdict: Option<Verdict>) -> NftRule {
    expressions.extend(verdict.map(Expression::Verdict));
    NftRule { expressions }
}
