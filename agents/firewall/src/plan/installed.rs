use std::collections::{BTreeMap, BTreeSet};

use super::Change;
use crate::model::{BaseChain, NftSet};

/// A rule that the kernel holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledRule {
    /// The kernel's number of the rule.
    pub handle: u64,
    /// Its expressions, as the kernel dumps them.
    pub expressions: Vec<u8>,
}

/// A chain that the kernel holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledChain {
    /// Hook, if it is one of ours.
    pub base: Option<BaseChain>,
    /// `false` for a base chain with another hook, priority or policy than ours.
    pub is_well_placed: bool,
    /// Rules in their order.
    pub rules: Vec<InstalledRule>,
}

/// Our table, as the kernel holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The kernel's generation of all rules, which every change by anybody raises.
    pub generation: u32,
    /// `true` if the table exists.
    pub exists: bool,
    /// `true` if the table is switched off.
    pub is_dormant: bool,
    /// `true` if it has objects that are no counters.
    pub has_other_objects: bool,
    /// Names of sets of a kind that we never make.
    pub foreign_sets: BTreeSet<String>,
    /// Names of counters.
    pub counters: BTreeSet<String>,
    /// Sets by name.
    pub sets: BTreeMap<String, NftSet>,
    /// Chains by name.
    pub chains: BTreeMap<String, InstalledChain>,
}

impl Installed {
    /// Records changes that the kernel has made. `false` if they are not all known by it: the
    /// kernel chooses the numbers of rules, so chains must be read again after a change of them.
    pub fn record(&mut self, changes: &[Change]) -> bool {
        let mut is_whole = true;
        for change in changes {
            match change {
                Change::AddTable => self.exists = true,
                Change::RemoveTable => *self = Self::default(),
                Change::AddCounter(name) => {
                    self.counters.insert(name.clone());
                }
                Change::RemoveCounter(name) => {
                    self.counters.remove(name);
                }
                Change::AddSet { set, spec } => {
                    let (spec, elements) = (*spec, BTreeMap::new());
                    self.sets.insert(set.clone(), NftSet { spec, elements });
                }
                Change::RemoveSet(name) => {
                    self.sets.remove(name);
                    self.foreign_sets.remove(name);
                }
                Change::AddElements { set, elements, .. } => {
                    if let Some(set) = self.sets.get_mut(set) {
                        let added = elements.iter();
                        let pairs = added.map(|keyed| (keyed.key.clone(), keyed.element.clone()));
                        set.elements.extend(pairs);
                    }
                }
                Change::RemoveElements { set, elements, .. } => {
                    if let Some(set) = self.sets.get_mut(set) {
                        for keyed in elements {
                            set.elements.remove(&keyed.key);
                        }
                    }
                }
                Change::AddChain { .. }
                | Change::RemoveChain(_)
                | Change::AddRule { .. }
                | Change::RemoveRule { .. } => is_whole = false,
            }
        }
        is_whole
    }
}
