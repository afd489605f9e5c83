//! Remarks about a file: rules that do not do what they seem to.

use std::collections::HashSet;
use std::fmt;

use crate::expression::{CheckExpression, SimpleCheck};
use crate::ironic;
use crate::policy::{CompileRemark, OsloPolicy, PolicyRule, RuleOrigin};

/// A remark about one rule: the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintRemark {
    /// Name of the rule.
    pub rule: String,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// Name that oslo.policy asks instead of rules that do not exist.
const DEFAULT_RULE: &str = "default";

impl LintRemark {
    /// A remark about the first rule that names a role or a constant without a sample caller.
    pub(super) fn not_sampled(rule: &str) -> Self {
        Self::new(
            rule,
            "the file names so many roles and constants that not every one has a sample caller",
            "compare a part of the file at a time",
        )
    }

    fn new(rule: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for LintRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {:?}: {}; {}", self.rule, self.problem, self.remedy)
    }
}

/// Remarks about the rules of the file, in the order of the rules.
pub(super) fn of(policy: &OsloPolicy) -> Vec<LintRemark> {
    let mut remarks: Vec<LintRemark> = policy
        .remarks()
        .iter()
        .filter_map(|remark| compiled(policy, remark))
        .collect();
    let written: HashSet<&str> = policy
        .rules()
        .iter()
        .filter(|rule| rule.origin == RuleOrigin::File)
        .map(|rule| rule.name.as_str())
        .collect();
    let referred: HashSet<&str> = policy
        .rules()
        .iter()
        .flat_map(|rule| references(&rule.check))
        .collect();
    for rule in policy.rules() {
        remarks.extend(match (rule.origin, rule.registered) {
            (RuleOrigin::File, Some(_)) => of_override(rule),
            (RuleOrigin::File, None) => of_own(rule, &referred),
            (RuleOrigin::OldName(old), _) => Some(LintRemark::new(
                &rule.name,
                format!(
                    "it has no check string of its own, and gets that of {old}, as it was called"
                ),
                format!("write {} into the file if it should differ", rule.name),
            )),
            (RuleOrigin::Default, _) => of_ignored_name(rule, &written),
        });
    }
    remarks
}

fn compiled(policy: &OsloPolicy, remark: &CompileRemark) -> Option<LintRemark> {
    let (id, problem, remedy) = match remark {
        CompileRemark::UnknownRule { rule, reference } => (
            *rule,
            format!("it refers to the rule {reference}, which does not exist and permits nobody"),
            "correct the name, or add the rule",
        ),
        CompileRemark::UnknownAttribute { rule, attribute } => (
            *rule,
            format!("it reads %({attribute})s, which no object has, so that the check never holds"),
            "use an attribute of docs/reference/ironic-policy.md, such as node.owner",
        ),
        CompileRemark::NeverTrue { rule, check } => (
            *rule,
            format!("{check} never holds: an absent value equals nothing, not even another one"),
            "remove it",
        ),
    };
    Some(LintRemark::new(&policy.rule(id)?.name, problem, remedy))
}

/// Remarks about a rule of Ironic that the file replaces.
fn of_override(rule: &PolicyRule) -> Option<LintRemark> {
    if ironic::is_for_removal(&rule.name) {
        return Some(LintRemark::new(
            &rule.name,
            "a later release of Ironic removes it",
            "write its check into the rules that refer to it",
        ));
    }
    if rule.is_as_registered() {
        return Some(LintRemark::new(
            &rule.name,
            "it is as the default",
            "remove it",
        ));
    }
    let old = references(&rule.check).find(|name| ironic::is_for_removal(name))?;
    let meaning = match old {
        "is_admin" | "admin_api" => ", and holds for the role admin in any project",
        "is_node_owner" | "is_node_lessee" | "is_allocation_owner" => ", and asks for no role",
        _ => "",
    };
    Some(LintRemark::new(
        &rule.name,
        format!("it refers to {old}, which a later release of Ironic removes{meaning}"),
        "name role and scope, such as role:member and project_id:%(node.owner)s",
    ))
}

/// Remarks about a rule that only the file has.
fn of_own(rule: &PolicyRule, referred: &HashSet<&str>) -> Option<LintRemark> {
    if referred.contains(rule.name.as_str()) {
        return None;
    }
    let problem = if rule.name == DEFAULT_RULE {
        "it has no effect: rules that do not exist permit nobody here"
    } else {
        "it decides no call of Ironic, and no rule refers to it"
    };
    Some(LintRemark::new(
        &rule.name,
        problem,
        "correct its name, or remove it",
    ))
}

/// Remarks about a rule whose earlier name the file has without effect.
fn of_ignored_name(rule: &PolicyRule, written: &HashSet<&str>) -> Option<LintRemark> {
    let old = rule.registered?.old?;
    if old.name == rule.name || !written.contains(old.name) {
        return None;
    }
    Some(LintRemark::new(
        &rule.name,
        format!(
            "the file has {}, as it was called, which does not change it",
            old.name
        ),
        format!("write {} into the file if it should follow", rule.name),
    ))
}

/// Names of the rules that a check string refers to.
fn references(check: &CheckExpression) -> impl Iterator<Item = &str> {
    check.checks().into_iter().filter_map(SimpleCheck::rule)
}
