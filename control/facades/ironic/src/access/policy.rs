//! The policy of Ironic's calls.

use control_oslo::{OsloPolicy, PolicyTarget};

use super::FacadeCaller;

/// The compiled policy file of the site over Ironic's defaults.
#[derive(Debug)]
pub(crate) struct AccessPolicy(OsloPolicy);

impl AccessPolicy {
    /// Decides by a compiled policy.
    pub(crate) const fn new(policy: OsloPolicy) -> Self {
        Self(policy)
    }

    /// `true` if the rule permits the caller this call on the object. A rule that does not exist
    /// permits nobody.
    pub(crate) fn permits(
        &self,
        rule: &str,
        caller: &FacadeCaller,
        target: &PolicyTarget<'_>,
    ) -> bool {
        let decision = self.0.decide(rule, &caller.credentials, target);
        if !decision.is_permitted() {
            tracing::debug!(rule, decision = %decision, "the policy refuses a call");
        }
        decision.is_permitted()
    }
}
