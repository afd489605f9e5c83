use std::collections::BTreeMap;
use std::ops::Range;

use super::entries::{entry_count, for_each_entry};
use super::flow_numbers::FlowNumbers;
use super::{compile_noting, layers};
use crate::model::{Element, NftSet, NftTable};
use crate::rule::{Rule, RuleSet};

/// Most rules that a change replaces one by one. A larger one compiles everything.
const PATCH_MAX: usize = 1000;

/// The compiler with its last result, so that a change of few rules costs only their entries.
///
/// Its result is that of [`super::compile`], but for the marks of flows, which networks keep while others
/// come and go: what it cannot be sure of, it compiles as a
/// whole.
#[derive(Debug, Default)]
pub struct RuleCompiler {
    /// The rules that the table was compiled from.
    rules: RuleSet,
    /// `None` before the first time, and while a change is half done.
    table: Option<NftTable>,
    /// `true` if several rules have an equal entry: then the entry of a rule that goes may have to
    /// become another rule's.
    has_shared_entries: bool,
    /// `None` before the first time.
    numbers: Option<FlowNumbers>,
}

/// The part in which two lists of rules differ, in each of them.
struct Window {
    old: Range<usize>,
    new: Range<usize>,
}

impl RuleCompiler {
    /// `true` before the first time.
    pub(crate) fn is_new(&self) -> bool {
        self.numbers.is_none()
    }

    /// Takes over from the sets of the kernel's table how the marks of flows name networks: flows outlive
    /// this program.
    pub(crate) fn adopt(&mut self, sets: &BTreeMap<String, NftSet>) {
        self.numbers = Some(FlowNumbers::of_sets(sets));
    }

    /// Compiles rules.
    pub fn compile(&mut self, rules: &RuleSet) -> &NftTable {
        self.numbers.get_or_insert_default().admit(rules);
        let table = match self.patch(rules) {
            Some(table) => table,
            None => {
                let numbers = self.numbers.get_or_insert_default();
                let (table, has_shared_entries) = compile_noting(rules, numbers);
                self.has_shared_entries = has_shared_entries;
                self.rules = rules.clone();
                table
            }
        };
        self.table.insert(table)
    }

    /// The last table with the tenant's rules that differ replaced. `None` if that is not enough.
    fn patch(&mut self, rules: &RuleSet) -> Option<NftTable> {
        let mut table = self.table.take()?;
        if self.has_shared_entries || !has_same_frame(&self.rules, rules) {
            return None;
        }
        let window = Window::between(&self.rules.tenant, &rules.tenant);
        let old = self.rules.tenant.get(window.old.clone())?;
        let new = rules.tenant.get(window.new)?;
        if old.len() + new.len() > PATCH_MAX {
            return None;
        }
        let epoch = super::epoch::epoch(rules);
        for rule in old {
            replace_entries(&mut table, rule, &epoch, false)?;
            table.counters.remove(&rule.id.counter());
        }
        for rule in new {
            replace_entries(&mut table, rule, &epoch, true)?;
            table.counters.insert(rule.id.counter());
        }
        let new = new.to_vec();
        drop(self.rules.tenant.splice(window.old, new));
        Some(table)
    }
}

/// `true` if everything but the tenant's rules is equal.
fn has_same_frame(old: &RuleSet, new: &RuleSet) -> bool {
    // By name, so that a field that is added later must be thought of here.
    let RuleSet {
        networks,
        operator,
        tenant: _,
        rate_limits,
        resolver,
        allowed_egress,
        internal_prefixes,
        input,
    } = old;
    *networks == new.networks
        && *operator == new.operator
        && *rate_limits == new.rate_limits
        && *resolver == new.resolver
        && *allowed_egress == new.allowed_egress
        && *internal_prefixes == new.internal_prefixes
        && *input == new.input
}

impl Window {
    fn between(old: &[Rule], new: &[Rule]) -> Self {
        let pairs = old.iter().zip(new);
        let begin = pairs.take_while(|(old, new)| old == new).count();
        let rest = old[begin..].iter().rev().zip(new[begin..].iter().rev());
        let end = rest.take_while(|(old, new)| old == new).count();
        Self {
            old: begin..old.len() - end,
            new: begin..new.len() - end,
        }
    }
}

/// Adds or removes the entries of a tenant's rule. `None` if more than entries of maps would change:
/// a map comes or goes, two rules share an entry, the rule is logged by a layer of its own, or its
/// destinations are names, which are in other layers.
fn replace_entries(table: &mut NftTable, rule: &Rule, epoch: &str, is_added: bool) -> Option<()> {
    if rule.log || !rule.names.is_empty() {
        return None;
    }
    let layer = layers::tenant_name(rule.direction, epoch);
    let counter = rule.id.counter();
    // A rule without an entry makes a chain without a rule.
    let mut is_done = entry_count(rule) > 0;
    for_each_entry(rule, |shape, key| {
        let map = table.sets.get_mut(&format!("{layer}.{}", shape.name()));
        is_done &= map.is_some_and(|map| {
            if is_added {
                let value = Element::Counter(counter.clone());
                map.elements.insert(key, value).is_none()
            } else {
                map.elements.remove(&key).is_some() && !map.elements.is_empty()
            }
        });
    });
    is_done.then_some(())
}
