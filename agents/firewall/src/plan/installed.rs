use std::collections::{BTreeMap, BTreeSet};

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
