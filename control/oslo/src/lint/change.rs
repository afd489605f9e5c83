//! Calls that sample callers gain or lose.

use strum::IntoStaticStr;

use super::danger::{DangerKind, kind_of};
use crate::ironic::gate;
use crate::persona::{ObjectSituation, Persona};
use crate::policy::OsloPolicy;
use crate::registered::RegisteredRule;

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CallAccess {
    /// The rule refuses it.
    No,
    /// The rule permits it, but the caller does not see the object: 404.
    Hidden,
    /// It is permitted.
    Yes,
}

/// A call that a sample caller gains or loses.
#[derive(Clone, Debug)]
pub struct AccessChange {
    /// The rule of the call.
    pub rule: &'static RegisteredRule,
    /// Name of the sample caller.
    pub persona: String,
    /// The object that it calls on.
    pub situation: ObjectSituation,
    /// The answer by the defaults.
    pub before: CallAccess,
    /// The answer by the file.
    pub after: CallAccess,
    /// The rule and the check behind the answer by the file.
    pub reason: String,
    /// The danger of a gain. `None` means that it is within the caller's own project.
    pub danger: Option<DangerKind>,
}

impl AccessChange {
    /// `true` if the caller gains the call, or would with the right to see the object.
    #[must_use]
    pub fn is_gain(&self) -> bool {
        self.after > self.before
    }
}

/// One question to both policies.
struct LintedCall<'a> {
    rule: &'static RegisteredRule,
    persona: &'a Persona,
    situation: ObjectSituation,
}

impl LintedCall<'_> {
    /// A call on an object needs the rule by which objects of its kind are seen, too.
    fn access(&self, policy: &OsloPolicy) -> CallAccess {
        let permits = |rule: &str| {
            let target = self.situation.target(self.rule.subject);
            policy
                .decide(rule, &self.persona.credentials, &target)
                .is_permitted()
        };
        match (permits(self.rule.name), gate(self.rule.subject)) {
            (false, _) => CallAccess::No,
            (true, Some(gate)) if !permits(gate) => CallAccess::Hidden,
            (true, _) => CallAccess::Yes,
        }
    }

    /// The reason of the answer, with that of the rule that hides the object.
    fn reason(&self, policy: &OsloPolicy, access: CallAccess) -> String {
        let target = self.situation.target(self.rule.subject);
        let rule = match (access, gate(self.rule.subject)) {
            (CallAccess::Hidden, Some(gate)) => gate,
            _ => self.rule.name,
        };
        let decision = policy.decide(rule, &self.persona.credentials, &target);
        decision.to_string()
    }

    fn change(&self, before: &OsloPolicy, after: &OsloPolicy) -> Option<AccessChange> {
        let (was, is) = (self.access(before), self.access(after));
        // A caller that does not see the object loses nothing with a rule that let it.
        if was == is || (was == CallAccess::Hidden && is == CallAccess::No) {
            return None;
        }
        let is_gain = is > was;
        Some(AccessChange {
            rule: self.rule,
            persona: self.persona.name.clone(),
            situation: self.situation,
            before: was,
            after: is,
            reason: self.reason(after, is),
            danger: is_gain
                .then(|| kind_of(self.rule.subject, self.persona.project, self.situation))
                .flatten(),
        })
    }
}

/// Every rule asked for every sample caller and object; the answers in which the policies differ.
pub(super) fn between(
    before: &OsloPolicy,
    after: &OsloPolicy,
    personas: &[Persona],
) -> Vec<AccessChange> {
    let mut changes = Vec::new();
    for rule in before.rules().iter().filter_map(|rule| rule.registered) {
        for persona in personas {
            for situation in ObjectSituation::of(rule.subject) {
                let call = LintedCall {
                    rule,
                    persona,
                    situation: *situation,
                };
                changes.extend(call.change(before, after));
            }
        }
    }
    changes
}
