//! Decisions.

use super::OsloPolicy;
use super::check_node::{CheckNode, CheckNodeId};
use super::decision::{DecidingCheck, PolicyDecision};
use super::rule::RuleId;
use crate::credentials::Credentials;
use crate::match_value::DecisionFacts;
use crate::target::PolicyTarget;

/// The answer of a node, and the check that it rests on.
#[derive(Clone, Copy)]
struct CheckVerdict {
    holds: bool,
    node: CheckNodeId,
    /// Checks of an alternative that held before one failed: the refusal names the alternative that
    /// came closest.
    passed: usize,
}

impl OsloPolicy {
    /// Decides a call by the rule of that name. A rule that does not exist permits nobody.
    #[must_use]
    pub fn decide(
        &self,
        rule: &str,
        credentials: &Credentials,
        target: &PolicyTarget<'_>,
    ) -> PolicyDecision<'_> {
        match self.rule_id(rule) {
            Some(id) => self.decide_by(id, credentials, target),
            None => PolicyDecision::UnknownRule,
        }
    }

    /// Decides a call by a rule of this policy, without a look-up of its name.
    #[must_use]
    pub fn decide_by(
        &self,
        id: RuleId,
        credentials: &Credentials,
        target: &PolicyTarget<'_>,
    ) -> PolicyDecision<'_> {
        let Some(rule) = self.rule(id) else {
            return PolicyDecision::UnknownRule;
        };
        let scope = credentials.scope();
        if !rule.is_for(scope) {
            return PolicyDecision::WrongScope {
                rule: &rule.name,
                scope,
            };
        }
        let facts = DecisionFacts {
            credentials,
            target,
        };
        let verdict = self.judge(rule.root(), facts);
        let deciding = DecidingCheck::new(self, id, verdict.node);
        if verdict.holds {
            PolicyDecision::Permitted(deciding)
        } else {
            PolicyDecision::Refused(deciding)
        }
    }

    /// Circles were refused when the policy was compiled, so that this ends.
    fn judge(&self, id: CheckNodeId, facts: DecisionFacts<'_>) -> CheckVerdict {
        let leaf = |holds: bool| CheckVerdict {
            holds,
            node: id,
            passed: usize::from(holds),
        };
        match self.node(id) {
            Some(CheckNode::Always) => leaf(true),
            Some(CheckNode::Never) | None => leaf(false),
            Some(CheckNode::Role(role)) => {
                let mut roles = facts.credentials.folded_roles();
                leaf(roles.any(|own| role.equals(own, facts, true)))
            }
            Some(CheckNode::Compare { left, right }) => leaf(left.is(right, facts)),
            Some(CheckNode::Rule(other)) => match self.rule(*other) {
                Some(rule) => self.judge(rule.root(), facts),
                None => leaf(false),
            },
            Some(CheckNode::Not(inner)) => leaf(!self.judge(*inner, facts).holds),
            Some(CheckNode::All(parts)) => self.judge_all(id, parts, facts),
            Some(CheckNode::Any(parts)) => self.judge_any(id, parts, facts),
        }
    }

    /// Ends at the first part that does not hold.
    fn judge_all(
        &self,
        id: CheckNodeId,
        parts: &[CheckNodeId],
        facts: DecisionFacts<'_>,
    ) -> CheckVerdict {
        let mut passed = 0;
        for part in parts {
            let verdict = self.judge(*part, facts);
            passed += verdict.passed;
            if !verdict.holds {
                return CheckVerdict { passed, ..verdict };
            }
        }
        CheckVerdict {
            holds: true,
            node: id,
            passed,
        }
    }

    /// Ends at the first part that holds.
    fn judge_any(
        &self,
        id: CheckNodeId,
        parts: &[CheckNodeId],
        facts: DecisionFacts<'_>,
    ) -> CheckVerdict {
        let mut closest = CheckVerdict {
            holds: false,
            node: id,
            passed: 0,
        };
        for part in parts {
            let verdict = self.judge(*part, facts);
            if verdict.holds {
                return verdict;
            }
            if verdict.passed > closest.passed {
                closest = verdict;
            }
        }
        closest
    }
}
