//! Comparison of two sets of policies by the outcomes of sample calls.

use std::fmt;
use std::sync::Arc;

use control_authz::{Denied, Judge, Permit, Reach, Ruling, Unjudged};
use proto_public::{Method, methods};

use crate::samples::SampleCall;
use crate::{JudgedCall, MOMENTS, Moment, Sample, SitePolicies, callers};

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// Permitted: by the table, or by the named rule.
    Yes(Option<String>),
    /// Refused by the table, with the HTTP status 401, 403 or 404.
    No(u16),
    /// Refused by a rule: its name and message.
    NoBy(String, String),
    /// Refused because a policy cannot be evaluated: its name and the reason.
    Broken(String, String),
}

/// A sample call whose outcome changes.
#[derive(Debug, Clone)]
pub struct OutcomeChange {
    /// The method's path.
    pub method: &'static str,
    /// Name of the kind of caller, see [`callers`].
    pub caller: &'static str,
    /// Name of the moment. `None` means that the outcome does not depend on it.
    pub moment: Option<&'static str>,
    /// The outcome under the old policies.
    pub before: CallOutcome,
    /// The outcome under the new policies.
    pub after: CallOutcome,
}

impl CallOutcome {
    /// `true` if the call is permitted.
    pub const fn is_yes(&self) -> bool {
        matches!(self, Self::Yes(_))
    }
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes(None) => f.pad("yes"),
            Self::Yes(Some(rule)) => write!(f, "yes by {rule}"),
            Self::No(code) => write!(f, "no ({code})"),
            Self::NoBy(rule, _) => write!(f, "no by {rule}"),
            Self::Broken(policy, _) => write!(f, "no: {policy} fails"),
        }
    }
}

impl From<Result<Permit, Denied>> for CallOutcome {
    fn from(result: Result<Permit, Denied>) -> Self {
        match result {
            Ok(permit) => Self::Yes(permit.rule().map(str::to_owned)),
            Err(Denied::Unauthenticated) => Self::No(401),
            Err(Denied::Forbidden { .. }) => Self::No(403),
            Err(Denied::NotFound { .. } | Denied::UnknownMethod(_)) => Self::No(404),
            Err(Denied::ByRule { rule, message, .. }) => Self::NoBy(rule, message),
            Err(Denied::Unjudged { policy, reason, .. }) => Self::Broken(policy, reason),
        }
    }
}

/// A judge without policies.
struct NoPolicies;

impl Judge for NoPolicies {
    fn deny(&self) -> Result<Option<Ruling>, Unjudged> {
        Ok(None)
    }
    fn allow(&self, _reach: Reach) -> Result<Option<Ruling>, Unjudged> {
        Ok(None)
    }
}

/// The outcome of a sample call, and the input document of the policies as JSON. `more` adds fields
/// to its request. `None` for the document means that no policy judges the method.
pub fn decide_sample(
    site: &Arc<SitePolicies>,
    method: &'static Method,
    sample: &Sample,
    moment: Moment,
    more: Option<&serde_json::Value>,
) -> (CallOutcome, Option<String>) {
    let call = SampleCall::new(method, sample, moment, more);
    match JudgedCall::new(site, &call.facts()) {
        Some(judge) => (call.under(&judge).into(), Some(judge.input())),
        None => (call.under(&NoPolicies).into(), None),
    }
}

/// Every sample call whose outcome under `after` differs from the one under `before`, in the order of
/// the contract.
pub fn compare(before: &Arc<SitePolicies>, after: &Arc<SitePolicies>) -> Vec<OutcomeChange> {
    let callers = callers();
    let judged = |method: &&'static Method| before.judges(method) || after.judges(method);
    let mut changes = Vec::new();
    for method in methods().iter().filter(judged) {
        for sample in &callers {
            let at = MOMENTS.map(|(name, moment)| {
                let outcome = |site| decide_sample(site, method, sample, moment, None).0;
                (name, outcome(before), outcome(after))
            });
            let is_always = at[0].1 == at[1].1 && at[0].2 == at[1].2;
            let told = at.into_iter().take(if is_always { 1 } else { 2 });
            changes.extend(
                told.filter(|(_, was, is)| was != is)
                    .map(|(name, was, is)| OutcomeChange {
                        method: &method.path,
                        caller: sample.name,
                        moment: (!is_always).then_some(name),
                        before: was,
                        after: is,
                    }),
            );
        }
    }
    changes
}
