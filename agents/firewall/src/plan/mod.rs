//! Which changes turn the table that the kernel holds into the compiled one.

mod change;
mod installed;
mod rules;

use std::cmp::Ordering;
use std::collections::BTreeMap;

pub use change::{Change, KeyedElement};
pub use installed::{Installed, InstalledChain, InstalledRule};

use crate::model::{Chain, Element, NftSet, NftTable};

/// The changes, in the order in which the kernel can take them. Empty if both are equal.
#[must_use]
pub fn plan(installed: &Installed, desired: &NftTable) -> Vec<Change> {
    if installed.exists && !is_compatible(installed, desired) {
        // Layouts of sets and hooks of chains cannot be changed. All in one transaction: the new
        // chain drops from its first packet on.
        let nothing = Installed::default();
        let mut changes = vec![Change::RemoveTable];
        changes.extend(plan(&nothing, desired));
        return changes;
    }
    let mut changes = Vec::new();
    if !installed.exists {
        changes.push(Change::AddTable);
    }
    let added = desired.counters.difference(&installed.counters);
    changes.extend(added.cloned().map(Change::AddCounter));
    plan_sets(installed, desired, &mut changes);
    for (name, chain) in &desired.chains {
        if !installed.chains.contains_key(name) {
            changes.push(Change::AddChain {
                chain: name.clone(),
                base: chain.base,
            });
        }
    }
    plan_rules(installed, desired, &mut changes);
    let is_gone = |name: &&String| !desired.sets.contains_key(*name);
    let sets = installed.sets.keys().filter(is_gone);
    let all = sets.chain(&installed.foreign_sets).cloned();
    changes.extend(all.map(Change::RemoveSet));
    let is_gone = |name: &&String| !desired.chains.contains_key(*name);
    let chains = installed.chains.keys().filter(is_gone).cloned();
    changes.extend(chains.map(Change::RemoveChain));
    let removed = installed.counters.difference(&desired.counters);
    changes.extend(removed.cloned().map(Change::RemoveCounter));
    changes
}

/// Splits a plan into the changes that decide about packets, and the removal of what the first ones
/// leave unused: chains and sets that are not desired, and counters if such sets may lead to them.
/// The second part is another transaction: until the first is complete, packets may still be
/// looked up there.
#[must_use]
pub fn split(changes: Vec<Change>, desired: &NftTable) -> SplitPlan {
    if changes.contains(&Change::RemoveTable) {
        return SplitPlan {
            decisive: changes,
            cleanup: Vec::new(),
        };
    }
    let leaves_unused =
        |change: &Change| matches!(change, Change::RemoveSet(_) | Change::RemoveChain(_));
    let keeps_counters = changes.iter().any(leaves_unused);
    let is_cleanup = |change: &Change| match change {
        Change::RemoveSet(_) | Change::RemoveChain(_) => true,
        Change::RemoveElements { set, .. } => !desired.sets.contains_key(set),
        Change::RemoveRule { chain, .. } => !desired.chains.contains_key(chain),
        Change::RemoveCounter(_) => keeps_counters,
        _ => false,
    };
    let (cleanup, decisive) = changes.into_iter().partition(is_cleanup);
    SplitPlan { decisive, cleanup }
}

/// A plan as two transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitPlan {
    /// Changes that decide about packets.
    pub decisive: Vec<Change>,
    /// Removal of what is unused afterwards.
    pub cleanup: Vec<Change>,
}

/// `true` if additions and removals are enough.
fn is_compatible(installed: &Installed, desired: &NftTable) -> bool {
    let sets = installed.sets.iter().all(|(name, set)| {
        let wanted = desired.sets.get(name);
        wanted.is_none_or(|wanted| wanted.spec == set.spec)
    });
    let chains = installed.chains.iter().all(|(name, chain)| {
        let wanted = desired.chains.get(name);
        wanted.is_none_or(|wanted| chain.is_well_placed && wanted.base == chain.base)
    });
    let is_desired = |name: &String| desired.sets.contains_key(name);
    let is_hidden = installed.foreign_sets.iter().any(is_desired);
    sets && !is_hidden && chains && !installed.is_dormant && !installed.has_other_objects
}

fn plan_sets(installed: &Installed, desired: &NftTable, changes: &mut Vec<Change>) {
    let empty = BTreeMap::new();
    for (name, set) in &desired.sets {
        let old = installed.sets.get(name).map_or(&empty, |old| &old.elements);
        if !installed.sets.contains_key(name) {
            changes.push(Change::AddSet {
                set: name.clone(),
                spec: set.spec,
            });
        }
        if set.spec.has_timeout {
            continue;
        }
        let difference = Difference::between(old, &set.elements);
        if !difference.removed.is_empty() {
            changes.push(Change::RemoveElements {
                set: name.clone(),
                spec: set.spec,
                elements: difference.removed,
            });
        }
        if !difference.added.is_empty() {
            changes.push(Change::AddElements {
                set: name.clone(),
                spec: set.spec,
                elements: difference.added,
            });
        }
    }
    // A counter leaves only after every element that leads to it.
    let is_gone = |set: &(&String, &NftSet)| !desired.sets.contains_key(set.0);
    for (name, set) in installed.sets.iter().filter(is_gone) {
        if set.spec.has_counters && !set.elements.is_empty() {
            changes.push(Change::RemoveElements {
                set: name.clone(),
                spec: set.spec,
                elements: set
                    .elements
                    .iter()
                    .map(|(key, element)| keyed(key, element))
                    .collect(),
            });
        }
    }
}

/// Elements of a set that must go, and that must come. One with another value is in both.
#[derive(Debug, Default)]
struct Difference {
    removed: Vec<KeyedElement>,
    added: Vec<KeyedElement>,
}

impl Difference {
    /// Compares both in the order of their keys: sets may have hundreds of thousands of elements.
    fn between(old: &BTreeMap<Vec<u8>, Element>, new: &BTreeMap<Vec<u8>, Element>) -> Self {
        let mut found = Self::default();
        let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return found,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) if old == new => {
                    olds.next();
                    news.next();
                    continue;
                }
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            if order != Ordering::Greater {
                found
                    .removed
                    .extend(olds.next().map(|(key, element)| keyed(key, element)));
            }
            if order != Ordering::Less {
                found
                    .added
                    .extend(news.next().map(|(key, element)| keyed(key, element)));
            }
        }
    }
}

fn keyed(key: &[u8], element: &Element) -> KeyedElement {
    KeyedElement {
        key: key.to_vec(),
        element: element.clone(),
    }
}

fn plan_rules(installed: &Installed, desired: &NftTable, changes: &mut Vec<Change>) {
    let mut removed = Vec::new();
    for (name, chain) in &desired.chains {
        let old = installed
            .chains
            .get(name)
            .map_or(&[][..], |chain| chain.rules.as_slice());
        rules::plan_chain(name, old, chain, changes, &mut removed);
    }
    let gone = Chain::default();
    for (name, chain) in &installed.chains {
        if !desired.chains.contains_key(name) {
            rules::plan_chain(name, &chain.rules, &gone, changes, &mut removed);
        }
    }
    changes.extend(removed);
}
