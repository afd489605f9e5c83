//! Deploy policies with their patterns compiled: made when a row is written or loaded, and kept in
//! the index.

use std::fmt;

use proto_errors::Error;
use proto_types::ProjectId;
use regex::bytes::RegexSet;

use super::patterns::{broken_rule, compile};
use crate::meta::Labels;
use crate::pool::entity::{DEPLOY_POLICIES_MAX, DeployPolicy, PRIORITY_MAX};

/// A project as policies see it. Each part of it is an administrator's, and none is the project's
/// own word.
#[derive(Debug, Clone)]
pub(crate) struct Claimant<'a> {
    /// The project.
    pub(crate) project: ProjectId,
    /// Its id as text, which patterns read.
    pub(crate) id_text: String,
    /// Its alias; `None` means none.
    pub(crate) alias: Option<&'a str>,
    /// Labels that administrators gave to it. `None` means none.
    pub(crate) labels: Option<&'a Labels>,
}

/// A list of policies, ready to be asked.
#[derive(Clone)]
pub(crate) struct CompiledPolicies {
    policies: Vec<DeployPolicy>,
    /// The patterns, in the order of the policies that have one. `None` means that a stored pattern
    /// cannot be compiled: its policy admits nobody.
    patterns: Option<RegexSet>,
}

impl CompiledPolicies {
    /// The policies of a stored row. Patterns that cannot be compiled make their policies admit
    /// nobody.
    pub(crate) fn of(policies: &[DeployPolicy]) -> Self {
        Self {
            policies: policies.to_vec(),
            patterns: compile(patterns_of(policies)).ok(),
        }
    }

    /// Checks policies before they are written.
    ///
    /// # Errors
    /// `InvalidField` for too many, one without a condition, or a pattern that is not one.
    pub(crate) fn check(field: &str, policies: &[DeployPolicy]) -> Result<(), Error> {
        if policies.len() > DEPLOY_POLICIES_MAX {
            let rule = format!("must be at most {DEPLOY_POLICIES_MAX}");
            return Err(Error::invalid(field, rule));
        }
        for policy in policies {
            let name = &policy.name;
            if !policy.is_explicit() {
                let rule = format!(
                    "\"{name}\" has no condition: name projects, a pattern or labels, or set \
                     allow_all"
                );
                return Err(Error::invalid(field, rule));
            }
            if policy.priority_max > PRIORITY_MAX {
                let rule = format!("\"{name}\" has a priority above {PRIORITY_MAX}");
                return Err(Error::invalid(field, rule));
            }
            if let Some(rule) = policy.pattern.as_deref().and_then(broken_rule) {
                return Err(Error::invalid(field, format!("\"{name}\": {rule}")));
            }
        }
        let wrong = |reason| Error::invalid(field, format!("a pattern is wrong: {reason}"));
        compile(patterns_of(policies)).map(drop).map_err(wrong)
    }

    /// The highest priority that the policies let a project's claims have. `None` means that no
    /// policy admits the project.
    pub(crate) fn admits(&self, claimant: &Claimant<'_>) -> Option<u32> {
        let mut pattern_at = 0;
        let mut matched = None;
        let mut highest = None;
        for policy in &self.policies {
            let at = policy.pattern.as_ref().map(|_| {
                pattern_at += 1;
                pattern_at - 1
            });
            if !has_plain_conditions(policy, claimant) {
                continue;
            }
            let is_matched = at.is_none_or(|at| {
                let matched = matched.get_or_insert_with(|| self.matched(claimant));
                matched.contains(&at)
            });
            if is_matched {
                highest = highest.max(Some(policy.priority_max));
            }
        }
        highest
    }

    /// Places of the patterns that match the project's id or alias.
    fn matched(&self, claimant: &Claimant<'_>) -> Vec<usize> {
        let Some(patterns) = &self.patterns else {
            return Vec::new();
        };
        let by_id = patterns.matches(claimant.id_text.as_bytes());
        let mut all: Vec<usize> = by_id.into_iter().collect();
        if let Some(alias) = claimant.alias {
            all.extend(patterns.matches(alias.as_bytes()));
        }
        all
    }
}

fn patterns_of(policies: &[DeployPolicy]) -> impl Iterator<Item = &String> {
    policies.iter().filter_map(|policy| policy.pattern.as_ref())
}

/// `true` if all conditions but the pattern hold.
fn has_plain_conditions(policy: &DeployPolicy, claimant: &Claimant<'_>) -> bool {
    let is_named = policy.projects.is_empty() || policy.projects.contains(&claimant.project);
    let has_labels = policy.labels.iter().all(|wanted| {
        let value = claimant.labels.and_then(|labels| labels.get(&wanted.name));
        value.is_some_and(|value| wanted.value.as_ref().is_none_or(|wanted| wanted == value))
    });
    policy.is_explicit() && is_named && has_labels
}

/// Two lists are equal if their policies are: the patterns follow from them.
impl PartialEq for CompiledPolicies {
    fn eq(&self, other: &Self) -> bool {
        self.policies == other.policies
    }
}

impl fmt::Debug for CompiledPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.policies).finish()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::RequiredLabel;

    fn admits(policies: &[DeployPolicy], alias: &str, labels: &[(&str, &str)]) -> Option<u32> {
        let project = ProjectId::new(Uuid::from_u128(7));
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()));
        let labels: Labels = labels.collect();
        CompiledPolicies::of(policies).admits(&Claimant {
            project,
            id_text: project.to_string(),
            alias: (!alias.is_empty()).then_some(alias),
            labels: Some(&labels),
        })
    }

    fn pattern(text: &str) -> DeployPolicy {
        DeployPolicy {
            pattern: Some(text.into()),
            ..DeployPolicy::default()
        }
    }

    #[test]
    fn patterns_match_the_whole_alias() {
        for (text, alias, is_admitted) in [
            ("prod", "prod", true),
            ("prod", "not-prod", false),
            ("prod", "production", false),
            ("prod", "reproduce", false),
            ("prod.*", "production", true),
            ("n1|n2", "n2", true),
            ("n1|n2", "n12", false),
            ("p-.*", "p-1", true),
            ("p-.*", "xp-1", false),
            (".*", "anything", true),
            (".*", "", true),
            ("prod", "prod\n", false),
            ("00000000-.*", "", true),
        ] {
            let found = admits(&[pattern(text)], alias, &[]);
            assert_eq!(found.is_some(), is_admitted, "{text} and {alias}");
        }
    }

    #[test]
    fn conditions_of_a_policy_hold_together_and_policies_alone() {
        let label = |name: &str, value: Option<&str>| RequiredLabel {
            name: name.into(),
            value: value.map(str::to_owned),
        };
        let both = DeployPolicy {
            labels: vec![label("tier", Some("gold"))],
            priority_max: 5,
            ..pattern("p-.*")
        };
        let any = DeployPolicy {
            labels: vec![label("tier", None)],
            ..DeployPolicy::default()
        };
        assert_eq!(
            admits(std::slice::from_ref(&both), "p-1", &[("tier", "gold")]),
            Some(5)
        );
        assert_eq!(
            admits(std::slice::from_ref(&both), "p-1", &[("tier", "iron")]),
            None
        );
        assert_eq!(
            admits(std::slice::from_ref(&both), "q-1", &[("tier", "gold")]),
            None
        );
        assert_eq!(
            admits(std::slice::from_ref(&any), "q-1", &[("tier", "iron")]),
            Some(0)
        );
        assert_eq!(admits(std::slice::from_ref(&any), "q-1", &[]), None);
        assert_eq!(admits(&[any, both], "p-1", &[("tier", "gold")]), Some(5));
        assert_eq!(admits(&[DeployPolicy::default()], "p-1", &[]), None);
        assert_eq!(admits(&[], "p-1", &[]), None);
    }

    #[test]
    fn patterns_that_are_refused() {
        for text in ["", "(", "a)|(b", "(?i)a", "é", r"\p{L}", &"a".repeat(257)] {
            let refused = CompiledPolicies::check("policies", &[pattern(text)]);
            assert!(refused.is_err(), "{text}");
            // A stored one denies its own policy only.
            let open = DeployPolicy {
                allow_all: true,
                ..DeployPolicy::default()
            };
            assert_eq!(admits(&[pattern(text)], "a", &[]), None, "{text}");
            assert_eq!(admits(&[pattern(text), open], "a", &[]), Some(0), "{text}");
        }
        let large = pattern("(a{1,100}){1,100}");
        assert!(CompiledPolicies::check("policies", &[large]).is_err());
        let empty = CompiledPolicies::check("policies", &[DeployPolicy::default()]);
        assert!(empty.is_err());
    }
}
