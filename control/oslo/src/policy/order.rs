//! References between rules: no circles, and bounds on the work of one decision.

use super::OsloPolicy;
use super::check_node::CheckNode;
use super::rule::RuleId;
use crate::fault::PolicyFault;

/// Checks that one decision may visit, those of all rules that it refers to included. The defaults
/// of Ironic need fewer than 20.
pub const DECISION_CHECKS_MAX: usize = 1024;
/// Rules that a chain of references may have, so that a decision's recursion is bounded.
const CHAIN_MAX: usize = 32;

/// The walk over one rule.
#[derive(Clone, Copy)]
enum RuleWalk {
    Unknown,
    /// The rule is a part of the chain that is walked.
    Open,
    Done(RuleCost),
}

/// The most that a decision by a rule may need.
#[derive(Clone, Copy)]
struct RuleCost {
    checks: usize,
    /// Rules of its longest chain of references, itself included.
    chain: usize,
}

/// Refuses circles, chains that are too long and rules with too many checks.
pub(super) fn check(policy: &OsloPolicy) -> Result<(), PolicyFault> {
    let mut walk = ReferenceWalk {
        policy,
        walks: vec![RuleWalk::Unknown; policy.rules().len()],
        chain: Vec::new(),
    };
    for place in 0..policy.rules().len() {
        walk.cost(RuleId::of(place))?;
    }
    Ok(())
}

struct ReferenceWalk<'a> {
    policy: &'a OsloPolicy,
    walks: Vec<RuleWalk>,
    /// Rules that refer to one another, up to the one that is walked.
    chain: Vec<RuleId>,
}

impl ReferenceWalk<'_> {
    fn cost(&mut self, id: RuleId) -> Result<RuleCost, PolicyFault> {
        match self.walks.get(id.place()) {
            Some(RuleWalk::Done(cost)) => return Ok(*cost),
            Some(RuleWalk::Open) => return Err(self.circle(id)),
            Some(RuleWalk::Unknown) | None => self.set(id, RuleWalk::Open),
        }
        self.chain.push(id);
        if self.chain.len() > CHAIN_MAX {
            return Err(self.long_chain(self.chain.first().copied().unwrap_or(id)));
        }
        let mut cost = RuleCost {
            checks: 0,
            chain: 1,
        };
        for node in self.policy.nodes_of(id) {
            match node {
                CheckNode::Rule(other) => {
                    let other = self.cost(*other)?;
                    cost.checks = cost.checks.saturating_add(other.checks);
                    cost.chain = cost.chain.max(other.chain + 1);
                }
                CheckNode::Not(_) | CheckNode::All(_) | CheckNode::Any(_) => {}
                CheckNode::Always
                | CheckNode::Never
                | CheckNode::Role(_)
                | CheckNode::Compare { .. } => cost.checks = cost.checks.saturating_add(1),
            }
        }
        if cost.chain > CHAIN_MAX {
            return Err(self.long_chain(id));
        }
        if cost.checks > DECISION_CHECKS_MAX {
            return Err(self.many_checks(id, cost.checks));
        }
        self.chain.pop();
        self.set(id, RuleWalk::Done(cost));
        Ok(cost)
    }

    fn set(&mut self, id: RuleId, walk: RuleWalk) {
        if let Some(place) = self.walks.get_mut(id.place()) {
            *place = walk;
        }
    }

    fn circle(&self, id: RuleId) -> PolicyFault {
        let begin = self.chain.iter().position(|open| *open == id).unwrap_or(0);
        let links = self.chain.iter().skip(begin).chain([&id]);
        let names: Vec<&str> = links.map(|link| self.name(*link)).collect();
        PolicyFault::of_rule(
            self.name(id),
            format!("it refers to itself: {}", names.join(" -> ")),
            "remove one of the references",
        )
    }

    fn long_chain(&self, id: RuleId) -> PolicyFault {
        PolicyFault::of_rule(
            self.name(id),
            format!("it refers to a rule that refers to a rule, for more than {CHAIN_MAX} rules"),
            "shorten the chain",
        )
    }

    fn many_checks(&self, id: RuleId, checks: usize) -> PolicyFault {
        PolicyFault::of_rule(
            self.name(id),
            format!(
                "a decision would visit {checks} checks, with the rules that it refers to; at most \
                 {DECISION_CHECKS_MAX}"
            ),
            "refer to each rule once, or merge checks",
        )
    }

    fn name(&self, id: RuleId) -> &str {
        self.policy.rule(id).map_or("", |rule| rule.name.as_str())
    }
}
