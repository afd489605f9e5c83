//! Fragments, before the kernel puts them together.
//!
//! The kernel collects fragments of all networks in one room, and a datagram comes from the interface of
//! the fragment that completes it. So a fragment is checked alone, before it is collected: its source
//! belongs to the network that it comes from. Each network may send so many in a second, that it does not
//! fill the room of others, and each sender a part of them, that it does not use up those of its network.

use std::collections::BTreeMap;

use super::epoch;
use super::frame::{any_of, by_interface, interfaces, rate_limit, rule};
use super::source_rule::SourceCheck;
use super::{keys, sources};
use crate::model::{
    BaseChain, Chain, Expression, MetaKey, NftRule, NftSet, NftTable, PayloadBase, SetSpec, Verdict,
};
use crate::rule::{Network, NetworkKind, RuleSet};

/// Base chain of packets that arrive.
const ARRIVING: &str = "arriving";
/// Fragments of each network in a second, and those that may come at once: what the kernel's room has
/// to hold for it.
pub(crate) const FRAGMENTS_PER_SECOND: u32 = 4000;
pub(crate) const FRAGMENTS_AT_ONCE: u32 = 1000;
/// Fragments of each sender in a second, and those that may come at once: a part of its network's. A
/// datagram of 64 KiB has some 45.
pub(crate) const SENDER_PER_SECOND: u32 = 500;
pub(crate) const SENDER_AT_ONCE: u32 = 250;
/// Senders of a family that are remembered. Further ones have the limit of their network alone.
pub(crate) const SENDERS_MAX: u32 = 65_536;
/// Time after which a silent sender is forgotten, milliseconds. It may send as many at once again by
/// then.
pub(crate) const SENDER_MS: u64 = 2000;
/// Leading bits of the address of a sender of IPv6, which has a prefix of its own.
pub(crate) const SENDER_LEN_V6: u8 = 64;
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
        let counter = rate_limit(network);
        table.counters.insert(counter.clone());
        let count = Expression::Count(counter);
        for is_ipv4 in [true, false] {
            let over = over_by_sender(table, network, is_ipv4, count.clone());
            parts.rules.push(over);
        }
        let mut over = by_interface(MetaKey::InputName, &interfaces(network));
        over.push(Expression::OverPackets {
            rate: FRAGMENTS_PER_SECOND,
            burst: FRAGMENTS_AT_ONCE,
        });
        over.push(count);
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

/// The rule that drops what a sender of a network sends above its limit; adds the set of senders, which
/// all networks share: an interface is a part of its keys.
fn over_by_sender(
    table: &mut NftTable,
    network: &Network,
    is_ipv4: bool,
    count: Expression,
) -> NftRule {
    let (set, spec) = senders(is_ipv4);
    let elements = BTreeMap::new();
    table.sets.insert(set.to_owned(), NftSet { spec, elements });
    let mut over = keys::family(is_ipv4).to_vec();
    over.extend(by_interface(MetaKey::InputName, &interfaces(network)));
    // Behind the name of the interface, which is still there.
    let len = if is_ipv4 { 32 } else { SENDER_LEN_V6 };
    keys::address(is_ipv4, true, len, 4, &mut over);
    over.push(Expression::OverPacketsByKey {
        set: set.to_owned(),
        register: 0,
        rate: SENDER_PER_SECOND,
        burst: SENDER_AT_ONCE,
    });
    over.push(count);
    rule(over, Some(Verdict::Drop))
}

/// Name and layout of the set of senders of a family.
fn senders(is_ipv4: bool) -> (&'static str, SetSpec) {
    let (name, kind, len) = if is_ipv4 {
        ("fragment-senders4", SetSpec::IPV4, 4)
    } else {
        ("fragment-senders6", SetSpec::IPV6, 16)
    };
    let kind = SetSpec::INTERFACE << 6 | kind;
    let spec = SetSpec::of_packets(kind, 16 + len, SENDERS_MAX, SENDER_MS);
    (name, spec)
}

/// The networks with a bound of fragments.
pub(crate) fn bounded(rules: &RuleSet) -> impl Iterator<Item = &Network> {
    let all = rules.networks.iter();
    all.filter(|network| {
        let is_checked = matches!(network.kind, NetworkKind::External | NetworkKind::Private);
        is_checked && !network.interfaces.is_empty()
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_a_part_of_its_network_and_gains_nothing_by_silence() {
        const {
            assert!(SENDER_PER_SECOND * 4 <= FRAGMENTS_PER_SECOND);
            assert!(SENDER_AT_ONCE * 4 <= FRAGMENTS_AT_ONCE);
            // A full bucket, when it is forgotten.
            assert!(SENDER_AT_ONCE as u64 * 1000 <= SENDER_PER_SECOND as u64 * SENDER_MS);
        }
    }
}
