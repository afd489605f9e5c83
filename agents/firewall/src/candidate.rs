//! Compares a candidate, which somebody asks about, with the rules in force. Nothing is applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::admit::{Admitted, ObjectAdmission, Problem};
use crate::compile::entry_count;
use crate::rule::{Rule, RuleId, RuleSet};
use crate::source::{CollectedObjects, SourceSet};
use crate::state::Loaded;

/// The changes that a candidate would make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleComparison {
    /// Rules that would come.
    pub added: usize,
    /// Rules that would go.
    pub removed: usize,
    /// Rules that would say something else under their name.
    pub changed: usize,
    /// Rules that would be in force.
    pub rules: usize,
    /// Entries of maps in the kernel that these rules would have.
    pub entries: usize,
    /// Other parts that would change.
    pub parts: Vec<&'static str>,
    /// Objects that would be refused, of all sources.
    pub problems: Vec<Problem>,
}

impl RuleComparison {
    /// Compares a candidate with the rules in force.
    #[must_use]
    pub fn of(current: &RuleSet, candidate: &Admitted) -> Self {
        let Admitted { rules, problems } = candidate;
        let mut found = Self {
            rules: rules.rules().count(),
            entries: rules.rules().map(entry_count).sum(),
            parts: parts(current, rules),
            problems: problems.clone(),
            ..Self::default()
        };
        let mut old = by_id(current);
        for rule in rules.rules() {
            match old.remove(&rule.id) {
                None => found.added += 1,
                Some(before) if before != rule => found.changed += 1,
                Some(_) => {}
            }
        }
        found.removed = old.len();
        found
    }
}

/// Answers questions about candidates beside the agent's loop, one at a time: checking many rules
/// takes longer than a tick.
#[derive(Debug, Default)]
pub(crate) struct CandidateWorker(JoinSet<()>);

impl CandidateWorker {
    /// Takes the next question unless one is being answered. Call it often.
    pub(crate) fn tick(
        &mut self,
        sources: &mut SourceSet,
        wanted: Option<&Loaded>,
        collected: &CollectedObjects,
        current: &Arc<Admitted>,
    ) {
        while self.0.try_join_next().is_some() {}
        if !self.0.is_empty() {
            return;
        }
        let question = sources.next_candidate();
        // One that nobody waits for any more is not worth the work.
        let Some(question) = question.filter(|question| !question.answer.is_closed()) else {
            return;
        };
        let (wanted, current) = (wanted.cloned(), Arc::clone(current));
        let mut collected = collected.clone();
        collected.replace(question.source, question.objects);
        let answer = question.answer;
        self.0.spawn_blocking(move || {
            let missing = || "the firewall has no valid configuration".to_owned();
            let loaded = wanted.ok_or_else(missing).and_then(|wanted| {
                let loaded = wanted.with_objects(collected, &mut ObjectAdmission::default());
                loaded.map_err(|error| error.to_string())
            });
            let compare = |loaded: Loaded| RuleComparison::of(&current.rules, &loaded.admitted);
            let compared = loaded.map(compare);
            // Nobody waits any more if it took too long.
            drop(answer.send(compared));
        });
    }
}

fn by_id(rules: &RuleSet) -> BTreeMap<&RuleId, &Rule> {
    rules.rules().map(|rule| (&rule.id, rule)).collect()
}

/// The parts beside the rules that differ.
fn parts(current: &RuleSet, new: &RuleSet) -> Vec<&'static str> {
    let mut all = vec![
        ("networks", current.networks != new.networks),
        ("rate limits", current.rate_limits != new.rate_limits),
        ("access to the firewall", current.input != new.input),
        ("DNS proxy", current.resolver != new.resolver),
        (
            "allowed networks",
            current.allowed_egress != new.allowed_egress,
        ),
        (
            "internal prefixes",
            current.internal_prefixes != new.internal_prefixes,
        ),
        (
            "order of the operator's rules",
            !is_same_order(current, new),
        ),
    ];
    all.retain(|(_, differs)| *differs);
    all.into_iter().map(|(name, _)| name).collect()
}

/// `true` if the operator's rules that both have are in the same order: the first that matches
/// decides.
fn is_same_order(current: &RuleSet, new: &RuleSet) -> bool {
    let (old_ids, new_ids) = (by_id(current), by_id(new));
    let stay = |rule: &&Rule| old_ids.contains_key(&rule.id) && new_ids.contains_key(&rule.id);
    let old = current.operator.iter().filter(stay).map(|rule| &rule.id);
    old.eq(new.operator.iter().filter(stay).map(|rule| &rule.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::admit;
    use crate::config::Config;

    fn admitted(rules: &str, egress: &str) -> Admitted {
        let text = format!(
            "
sources:
  static:
    firewall:
      networks: [{{networkID: tenant, networkType: private, vrf: 42}}]
      rules: {rules}
    cwnp: {{egress: {egress}}}
controllers: {{firewall: {{source: static}}, cwnp: {{source: static}}}}
"
        );
        admit(&Config::parse(&text).unwrap())
    }

    #[test]
    fn what_comes_goes_and_changes_is_counted() {
        let smtp = "{name: no-smtp, action: drop, ports: [{port: 25}]}";
        let irc = "{name: no-irc, action: drop, ports: [{port: 6667}]}";
        let old = admitted(
            &format!("[{smtp}, {irc}]"),
            "[{name: web, ports: [{port: 80}]}, {name: dns}, {name: ntp}]",
        );
        let new = admitted(
            &format!("[{irc}, {smtp}]"),
            "[{name: web, ports: [{port: 81}]}, {name: dns}, {name: a}, {name: b}, {name: c,
             ports: [{port: 0}]}]",
        );
        let found = RuleComparison::of(&old.rules, &new);
        assert_eq!((found.added, found.removed, found.changed), (2, 1, 1));
        assert_eq!(found.rules, 6);
        assert_eq!(found.parts, ["order of the operator's rules"]);
        assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
        // One of each family for a rule, and none of networks, sources and management.
        assert_eq!(found.entries, 2 * found.rules);
        let same = RuleComparison::of(&new.rules, &new);
        assert_eq!((same.added, same.removed, same.changed), (0, 0, 0));
        assert!(same.parts.is_empty());
    }

    #[test]
    fn from_no_rules_every_part_is_new() {
        let new = admitted("[]", "[{name: dns}]");
        let found = RuleComparison::of(&RuleSet::default(), &new);
        assert_eq!((found.added, found.removed), (1, 0));
        assert!(found.parts.contains(&"networks"), "{:?}", found.parts);
    }
}
