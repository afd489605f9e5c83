//! Rules that a service registers, with their defaults.

use crate::credentials::TokenScope;

/// A rule of a service: the default that holds unless a file replaces it, and the calls it decides.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredRule {
    /// Name of the rule.
    pub name: &'static str,
    /// Check string that holds unless a file replaces it.
    pub check: &'static str,
    /// Scopes of tokens that the rule is for, whatever its check string. Empty means every scope.
    pub scopes: &'static [TokenScope],
    /// The calls: method and path. Empty means that other rules refer to it.
    pub calls: &'static [&'static str],
    /// The object that its calls are about.
    pub subject: RuleSubject,
    /// The rule that this one stands for, which files of earlier releases may still name.
    pub old: Option<OldRule>,
}

/// The default of an earlier release.
#[derive(Clone, Copy, Debug)]
pub struct OldRule {
    /// Name of the rule then; often the same as now.
    pub name: &'static str,
    /// Its check string then.
    pub check: &'static str,
}

/// The object that the calls of a rule are about, and by it the attributes of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSubject {
    /// A node, or a part of it. Its calls need `baremetal:node:get` as well.
    Node,
    /// An allocation. Its calls need `baremetal:allocation:get` as well.
    Allocation,
    /// A runbook.
    Runbook,
    /// No object: the answer holds objects of the caller's own project only.
    OwnProject,
    /// No object: the answer or the effect reaches objects of every project.
    EveryProject,
    /// No object: masks of passwords in answers.
    Secrets,
    /// No object: calls of a ramdisk, which has no token.
    Ramdisk,
    /// No call: a part of other rules.
    Part,
}

impl RegisteredRule {
    /// A rule that other rules refer to.
    #[must_use]
    pub const fn part(name: &'static str, check: &'static str) -> Self {
        Self {
            name,
            check,
            scopes: &[],
            calls: &[],
            subject: RuleSubject::Part,
            old: None,
        }
    }

    /// A rule of calls, for tokens of the system and of projects.
    #[must_use]
    pub const fn of_calls(
        subject: RuleSubject,
        name: &'static str,
        check: &'static str,
        calls: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            check,
            scopes: &[TokenScope::System, TokenScope::Project],
            calls,
            subject,
            old: None,
        }
    }

    /// The same rule for other scopes of tokens.
    #[must_use]
    pub const fn for_scopes(mut self, scopes: &'static [TokenScope]) -> Self {
        self.scopes = scopes;
        self
    }

    /// The same rule with its default of earlier releases.
    #[must_use]
    pub const fn once(self, check: &'static str) -> Self {
        self.once_named(self.name, check)
    }

    /// The same rule with its name and default of earlier releases.
    #[must_use]
    pub const fn once_named(mut self, name: &'static str, check: &'static str) -> Self {
        self.old = Some(OldRule { name, check });
        self
    }
}
