//! The rule compiler: a pure function from typed rules to the table.
//!
//! Consecutive operator rules with the same action and direction are a *layer*, and so are the
//! tenants' rules of each direction. In a layer the order of rules decides nothing but the counter.
//! Each rule becomes entries with exact keys: its prefixes and port ranges are split into blocks
//! that are a value under a mask. Entries with equal masks share a *shape*: one hash map and one
//! nftables rule, which masks the packet, looks the key up and counts in the counter of the rule
//! that the entry belongs to. So a changed rule is a few elements, and a new flow costs one lookup
//! for each shape, however many rules there are.
//!
//! The kernel reads rules and maps of a packet at different moments: a packet that meets the old
//! rules may find the new elements. Where the order of layers matters, that could let a denied
//! packet pass. So names of layers contain an *epoch*, which changes with the operator's rules and
//! with the private interfaces: then old rules read old maps, which stay until a second transaction.
//! Within an epoch only tenants' rules change, and each mixture of old and new accepts no packet that
//! neither accepts.
//!
//! Before any layer the sources of new flows are checked ([`sources`]), and the flows are bound to their
//! networks ([`flows`]). Fragments are checked before the kernel puts them together ([`fragments`]).

pub(crate) mod access;
mod accounting;
mod blocks;
mod compiler;
pub(crate) mod entries;
mod epoch;
pub(crate) mod flow_mark;
mod flow_marking;
pub(crate) mod flow_numbers;
mod flows;
pub(crate) mod fragments;
mod frame;
mod input;
mod keys;
mod layer;
pub(crate) mod layers;
mod names;
mod nat;
pub mod shape;
mod source_networks;
pub(crate) mod source_rule;
mod sources;

pub use accounting::{EXTERNAL_IN, EXTERNAL_OUT, INTERNAL_IN, INTERNAL_OUT};
pub use compiler::RuleCompiler;
pub use entries::entry_count;
pub use frame::{DROPPED, ESTABLISHED, FORWARD, INVALID, POSTROUTING, PRIVATE_INTERFACES};
pub use input::{INPUT, INPUT_DROPS, PINGS_PER_SECOND};
pub(crate) use layer::PREFIX_DROPPED;
pub use source_rule::SPOOFED;

use flow_numbers::FlowNumbers;

use crate::model::NftTable;
use crate::rule::RuleSet;

/// Compiles rules into the table that the kernel should hold.
///
/// Rules beyond [`proto_firewall::ENTRIES_MAX`] entries must have been refused before.
#[must_use]
pub fn compile(rules: &RuleSet) -> NftTable {
    compile_noting(rules, &FlowNumbers::of(rules)).0
}

/// Compiles rules of networks that have numbers; `true` if several rules of a layer have an equal entry.
fn compile_noting(rules: &RuleSet, numbers: &FlowNumbers) -> (NftTable, bool) {
    let mut table = NftTable::default();
    let epoch = epoch::epoch(rules);
    frame::declare(&mut table, rules, &epoch);
    numbers.add_sets(&mut table);
    let layers = layers::layers(rules, &epoch);
    let mut has_shared_entries = false;
    for layer in &layers {
        if layer.has_names {
            names::add(&mut table, layer);
        } else {
            has_shared_entries |= layer::add(&mut table, layer);
        }
    }
    frame::add_forward(&mut table, rules, &layers, &epoch, numbers);
    fragments::add(&mut table, rules);
    input::add(&mut table, rules, numbers);
    nat::add_postrouting(&mut table, rules);
    (table, has_shared_entries)
}
