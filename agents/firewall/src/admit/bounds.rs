//! Bounds of all rules together.

use std::collections::HashSet;

use proto_firewall::{RuleBudget, Violation};

use super::{Admitted, Problem};
use crate::compile::entry_count;
use crate::rule::{NameSelector, Rule, RuleId};

/// The share of the bounds that the rules so far have taken.
#[derive(Default)]
struct TakenBounds<'a> {
    ids: HashSet<&'a RuleId>,
    budget: RuleBudget<NameSelector>,
}

impl<'a> TakenBounds<'a> {
    /// The reason why a rule cannot be added. `None` if it was.
    fn add(&mut self, rule: &'a Rule) -> Option<Violation> {
        if !self.ids.insert(&rule.id) {
            let problem = "another object has the same name";
            return Some(Violation::new("name", problem, "rename one of them"));
        }
        self.budget.take(entry_count(rule), rule.names.iter()).err()
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
