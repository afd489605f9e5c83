//! Gains that reach what belongs to others.

use strum::IntoStaticStr;

use super::causes;
use super::change::{AccessChange, CallAccess};
use crate::ironic::gate;
use crate::persona::{ObjectSituation, PersonaProject};
use crate::policy::OsloPolicy;
use crate::registered::{RegisteredRule, RuleSubject};

/// The way in which a gain is dangerous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum DangerKind {
    /// A project gains a call on objects of another project, or on objects that nobody owns.
    ForeignObjects,
    /// A project gains a call that reaches objects of every project.
    EveryProject,
    /// A caller gains the passwords in answers.
    Passwords,
}

/// A rule by which callers gain what belongs to others.
#[derive(Clone, Debug)]
pub struct DangerousRule {
    /// The rule.
    pub rule: &'static RegisteredRule,
    /// The ways in which it is dangerous.
    pub kinds: Vec<DangerKind>,
    /// Names of the sample callers that gain it.
    pub personas: Vec<String>,
    /// Names in the file that it rests on: its own, that of an earlier release, those of rules that
    /// it refers to, or the one by which objects are seen.
    pub causes: Vec<String>,
}

impl DangerousRule {
    /// `true` if the name is that of the rule, or of a rule of the file that it rests on.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.rule.name == name || self.causes.iter().any(|cause| cause == name)
    }
}

/// The danger of a gain.
pub(super) fn kind_of(
    subject: RuleSubject,
    project: Option<PersonaProject>,
    situation: ObjectSituation,
) -> Option<DangerKind> {
    match (subject, project) {
        (RuleSubject::Secrets, _) => Some(DangerKind::Passwords),
        (RuleSubject::EveryProject, Some(_)) => Some(DangerKind::EveryProject),
        (RuleSubject::Node | RuleSubject::Allocation | RuleSubject::Runbook, Some(project))
            if !situation.involves(project) =>
        {
            Some(DangerKind::ForeignObjects)
        }
        _ => None,
    }
}

/// The rules with dangerous gains, in the order of the changes.
pub(super) fn of(changes: &[AccessChange], policy: &OsloPolicy) -> Vec<DangerousRule> {
    let mut found: Vec<DangerousRule> = Vec::new();
    for change in changes {
        let Some(kind) = change.danger else {
            continue;
        };
        if found
            .last()
            .is_none_or(|last| last.rule.name != change.rule.name)
        {
            found.push(DangerousRule {
                rule: change.rule,
                kinds: Vec::new(),
                personas: Vec::new(),
                causes: causes_of(change, policy),
            });
        }
        if let Some(last) = found.last_mut() {
            push_new(&mut last.kinds, kind);
            push_new(&mut last.personas, change.persona.clone());
        }
    }
    found
}

/// A rule that was there and hidden is dangerous by the rule that shows the object.
fn causes_of(change: &AccessChange, policy: &OsloPolicy) -> Vec<String> {
    let own = causes(policy, change.rule.name);
    match gate(change.rule.subject) {
        Some(gate) if own.is_empty() || change.before == CallAccess::Hidden => {
            [own, causes(policy, gate)].concat()
        }
        _ => own,
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, new: T) {
    if !list.contains(&new) {
        list.push(new);
    }
}
