//! Fragments, before the kernel puts them together.
//!
//! The kernel collects fragments of all networks in one room, and a datagram comes from the interface of
//! the fragment that completes it. So a fragment is checked alone, before it is collected: its source
//! belongs to the network that it comes from, and each network may send so many in a second, that it
//! does not fill the room of others.

use super::epoch;
use super::frame::{any_of, by_interface, interfaces, rate_limit, rule};
use super::source_rule::SourceCheck;
use super::{keys, sources};
use crate::model::{BaseChain, Chain, Expression, MetaKey, NftTable, PayloadBase, Verdict};
use crate::rule::{Network, NetworkKind, RuleSet};

/// Base chain of packets that arrive.
const ARRIVING: &str = "arriving";
/// Fragments of each network in a second. With [`FRAGMENTS_AT_ONCE`], and the seconds that the kernel
/// keeps one, they are a small part of its room.
pub(crate) const FRAGMENTS_PER_SECOND: u32 = 4000;
/// Fragments of each network that may come at once.
pub(crate) const FRAGMENTS_AT_ONCE: u32 = 1000;
/// The flag "more fragments" and the offset, of the two bytes that have them.
const IS_PART: u16 = 0x3FFF;

/// Adds the chains. Without a network to check there are none.
pub(super) fn add(table: &mut NftTable, rules: &RuleSet) {
    let check = SourceCheck::fragments(rules);
    let Some(check_sources) = sources::add(table, rules, &check) else {
        return;
    };
    let mut parts = Chain {
        base: None,
        rules: vec![check_sources],
    };
    for network in bounded(rules) {
        let mut over = by_interface(MetaKey::InputName, &interfaces(network));
        over.push(Expression::OverPackets {
            rate: FRAGMENTS_PER_SECOND,
            burst: FRAGMENTS_AT_ONCE,
        });
        let counter = rate_limit(network);
        table.counters.insert(counter.clone());
        over.push(Expression::Count(counter));
        parts.rules.push(rule(over, Some(Verdict::Drop)));
    }
    let name = format!("fragments.{}", epoch::of_sources(rules));
    let jump = |expressions| rule(expressions, Some(Verdict::Jump(name.clone())));
    let base = Chain {
        base: Some(BaseChain::Prerouting),
        rules: vec![jump(is_part_v4()), jump(is_part_v6())],
    };
    table.chains.insert(ARRIVING.to_owned(), base);
    table.chains.insert(name, parts);
}

/// The networks with a bound of fragments.
pub(crate) fn bounded(rules: &RuleSet) -> impl Iterator<Item = &Network> {
    let all = rules.networks.iter();
    all.filter(|network| network.kind != NetworkKind::Underlay && !network.interfaces.is_empty())
}

fn is_part_v4() -> Vec<Expression> {
    let mut expressions = keys::family(true).to_vec();
    expressions.push(Expression::Payload {
        base: PayloadBase::Network,
        offset: 6,
        length: 2,
        register: 0,
    });
    expressions.extend(any_of(IS_PART.to_be_bytes().to_vec()));
    expressions
}

fn is_part_v6() -> Vec<Expression> {
    vec![
        Expression::HasFragmentHeader { register: 0 },
        Expression::Equal {
            register: 0,
            value: vec![1],
        },
    ]
}
