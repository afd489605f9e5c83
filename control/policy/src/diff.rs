//! Who gains and who loses by a change of policies, before it is made.

use std::fmt;
use std::sync::Arc;

use control_authz::{Denied, Judge, Permit, Reach, Ruling, Unjudged};
use proto_public::{Method, methods};

use crate::samples::SampleCall;
use crate::{JudgedCall, MOMENTS, Moment, Sample, SitePolicies, callers};

/// What comes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// Permitted, by the table or by the rule.
    Yes(Option<String>),
    /// Refused by the table: what callers of HTTP know as 401, 403 or 404.
    No(u16),
    /// Refused by the rule, with its message.
    NoBy(String, String),
    /// The policy could not be evaluated, and why.
    Broken(String, String),
}

/// A call of which something else comes now.
#[derive(Debug, Clone)]
pub struct OutcomeChange {
    /// The method's path.
    pub method: &'static str,
    /// A sort of callers, see [`callers`].
    pub caller: &'static str,
    /// The moment, where it makes a difference.
    pub moment: Option<&'static str>,
    /// What came of it.
    pub before: CallOutcome,
    /// What comes of it.
    pub after: CallOutcome,
}

impl CallOutcome {
    /// Whether the call goes through.
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

/// The judge where no policy judges.
struct Nobody;

impl Judge for Nobody {
    fn deny(&self) -> Result<Option<Ruling>, Unjudged> {
        Ok(None)
    }
    fn allow(&self, _reach: Reach) -> Result<Option<Ruling>, Unjudged> {
        Ok(None)
    }
}

/// What comes of a sample call, and the input document that policies got, as JSON. `more` are
/// fields of its request.
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
        None => (call.under(&Nobody).into(), None),
    }
}

/// Every sample call of which something else comes under `after` than under `before`, in the order
/// of the contract.
pub fn compare(before: &Arc<SitePolicies>, after: &Arc<SitePolicies>) -> Vec<OutcomeChange> {
    let callers = callers();
    let judged = |it: &&'static Method| before.judges(it) || after.judges(it);
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
