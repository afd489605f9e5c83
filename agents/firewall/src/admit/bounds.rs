//! Bounds of all rules together.

use std::collections::{BTreeSet, HashSet};

use proto_firewall::Violation;

use super::{Admitted, Problem, fqdns};
use crate::compile::{ENTRIES_MAX, entry_count};
use crate::rule::{NameSelector, Rule, RuleId};

/// Entries that all rules together may have. It bounds the memory of the kernel's maps: about
/// 150 bytes each.
const ENTRIES_TOTAL_MAX: usize = 524_288;

/// The share of the bounds that the rules so far have taken.
#[derive(Default)]
struct TakenBounds<'a> {
    entries: usize,
    ids: HashSet<&'a RuleId>,
    names: BTreeSet<NameSelector>,
}

impl<'a> TakenBounds<'a> {
    /// The reason why a rule cannot be added. `None` if it was.
    fn add(&mut self, rule: &'a Rule) -> Option<Violation> {
        if !self.ids.insert(&rule.id) {
            let problem = "another object has the same name";
            return Some(Violation::new("name", problem, "rename one of them"));
        }
        if let Some(violation) = fqdns::too_many(rule, &mut self.names) {
            return Some(violation);
        }
        let count = entry_count(rule);
        if count == 0 {
            let problem = "source, destination and protocol have no address family in common";
            let remedy = "use IPv4 on both sides, or IPv6";
            return Some(Violation::new("from", problem, remedy));
        }
        if count > ENTRIES_MAX || self.entries.saturating_add(count) > ENTRIES_TOTAL_MAX {
            let problem = format!(
                "it needs {count} entries: one for each source, destination and block of ports; a \
                 rule may have {ENTRIES_MAX}, all together {ENTRIES_TOTAL_MAX}"
            );
            let remedy = "use shorter prefixes, or fewer ports";
            return Some(Violation::new("ports", problem, remedy));
        }
        self.entries += count;
        None
    }
}

impl Admitted {
    /// Removes rules that have too many entries, or an identity that another one has.
    pub(super) fn bound(&mut self) {
        let mut bounds = TakenBounds::default();
        let mut kept = Vec::new();
        for rule in self.rules.rules() {
            let violation = bounds.add(rule);
            kept.push(violation.is_none());
            let problem = violation.map(|violation| Problem::of_rule(&rule.id, violation));
            self.problems.extend(problem);
        }
        if kept.iter().all(|is_kept| *is_kept) {
            return;
        }
        let mut kept = kept.into_iter();
        let mut is_kept = |_: &Rule| kept.next().unwrap_or(false);
        self.rules.operator.retain(&mut is_kept);
        self.rules.tenant.retain(&mut is_kept);
    }
}
