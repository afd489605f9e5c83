//! A decision and its reason.

use std::fmt;

use super::OsloPolicy;
use super::check_node::CheckNodeId;
use super::rule::RuleId;
use crate::credentials::TokenScope;
use crate::expression::CheckExpression;

/// The answer to one call, with the rule and the check that decided.
///
/// It borrows the policy; texts are made only when they are asked for.
#[derive(Clone, Copy, Debug)]
pub enum PolicyDecision<'a> {
    /// The check holds.
    Permitted(DecidingCheck<'a>),
    /// No alternative holds; the check is the one that failed in the alternative that came closest.
    Refused(DecidingCheck<'a>),
    /// The rule is not for tokens of this scope.
    WrongScope {
        /// Name of the rule.
        rule: &'a str,
        /// Scope of the caller's token.
        scope: TokenScope,
    },
    /// There is no rule of that name.
    UnknownRule,
}

/// The check that a decision rests on.
#[derive(Clone, Copy)]
pub struct DecidingCheck<'a> {
    policy: &'a OsloPolicy,
    rule: RuleId,
    node: CheckNodeId,
}

impl PolicyDecision<'_> {
    /// `true` if the call is permitted.
    #[must_use]
    pub fn is_permitted(&self) -> bool {
        matches!(self, Self::Permitted(_))
    }
}

impl<'a> DecidingCheck<'a> {
    pub(super) fn new(policy: &'a OsloPolicy, rule: RuleId, node: CheckNodeId) -> Self {
        Self { policy, rule, node }
    }

    /// Name of the rule that was asked.
    #[must_use]
    pub fn rule(&self) -> &'a str {
        self.name(Some(self.rule))
    }

    /// Name of the rule whose check string has the check: the one that was asked, or one that it
    /// refers to.
    #[must_use]
    pub fn within(&self) -> &'a str {
        self.name(self.policy.owner(self.node))
    }

    /// The check.
    #[must_use]
    pub fn check(&self) -> Option<&'a CheckExpression> {
        let rule = self.policy.rule(self.policy.owner(self.node)?)?;
        let place = self.node.place().checked_sub(rule.root().place())?;
        rule.check.nth(place)
    }

    fn name(&self, id: Option<RuleId>) -> &'a str {
        let rule = id.and_then(|id| self.policy.rule(id));
        rule.map_or("", |rule| rule.name.as_str())
    }
}

impl fmt::Display for PolicyDecision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permitted(check) => write!(f, "permitted by rule {check}"),
            Self::Refused(check) => write!(f, "refused by rule {check}"),
            Self::WrongScope { rule, scope } => {
                let scope: &str = scope.into();
                write!(f, "refused: rule {rule} is not for tokens of a {scope}")
            }
            Self::UnknownRule => f.write_str("refused: there is no such rule"),
        }
    }
}

/// The rule that was asked, and the check: `baremetal:node:get: project_id:%(node.owner)s of rule
/// is_node_owner`.
impl fmt::Display for DecidingCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule())?;
        if let Some(check) = self.check() {
            write!(f, ": {check}")?;
        }
        if self.within() == self.rule() {
            return Ok(());
        }
        write!(f, " of rule {}", self.within())
    }
}

impl fmt::Debug for DecidingCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
