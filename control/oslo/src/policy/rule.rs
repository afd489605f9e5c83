//! One rule of a compiled policy.

use super::check_node::CheckNodeId;
use crate::credentials::TokenScope;
use crate::expression::CheckExpression;
use crate::registered::RegisteredRule;

/// Index of a rule in its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(u32);

/// The place that a rule's check string is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOrigin {
    /// The service.
    Default,
    /// The file.
    File,
    /// The file, which names the rule as it was called in an earlier release.
    OldName(&'static str),
}

/// A rule: its check string, and where it is from.
#[derive(Clone, Debug)]
pub struct PolicyRule {
    /// Name of the rule.
    pub name: String,
    /// Its check string.
    pub check: CheckExpression,
    /// The place that the check string is from.
    pub origin: RuleOrigin,
    /// The service's registration. `None` for rules that only the file has.
    pub registered: Option<&'static RegisteredRule>,
    root: CheckNodeId,
}

impl RuleId {
    /// Rules are bounded far below `u32::MAX`: a place beyond names no rule.
    pub(super) fn of(place: usize) -> Self {
        Self(u32::try_from(place).unwrap_or(u32::MAX))
    }

    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

impl PolicyRule {
    pub(super) fn new(
        name: &str,
        check: CheckExpression,
        origin: RuleOrigin,
        registered: Option<&'static RegisteredRule>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check,
            origin,
            registered,
            root: CheckNodeId::of(0),
        }
    }

    pub(super) fn root(&self) -> CheckNodeId {
        self.root
    }

    pub(super) fn set_root(&mut self, root: CheckNodeId) {
        self.root = root;
    }

    /// The name in the file that the check string is from.
    pub(crate) fn origin_in_file(&self) -> Option<&str> {
        match self.origin {
            RuleOrigin::Default => None,
            RuleOrigin::File => Some(&self.name),
            RuleOrigin::OldName(old) => Some(old),
        }
    }

    /// `true` if the check string is the registered one.
    pub(crate) fn is_as_registered(&self) -> bool {
        let default = self
            .registered
            .map(|rule| rule.check.parse::<CheckExpression>());
        default == Some(Ok(self.check.clone()))
    }

    /// `true` if the rule is for tokens of that scope, as far as its registration says.
    #[must_use]
    pub fn is_for(&self, scope: TokenScope) -> bool {
        self.registered
            .is_none_or(|rule| rule.scopes.is_empty() || rule.scopes.contains(&scope))
    }
}
