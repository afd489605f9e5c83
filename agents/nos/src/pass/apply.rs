use tokio::time::timeout;

use super::{Failure, Limits};
use crate::back_end::{Nos, NosError};
use crate::step::Step;

/// Steps applied at once that add one time limit of a step to theirs.
const STEPS_PER_LIMIT: u32 = 50;

/// Steps with the reasons why they failed, if they did.
pub(super) type Tried = Vec<(Step, Option<Failure>)>;

/// Steps that were applied at once, and not to their end.
pub(super) struct Cut {
    pub(super) steps: Vec<Step>,
    /// `true` if the time limit cut them.
    pub(super) has_stalled: bool,
}

/// Applies the steps of a round at once, which some back-ends do faster.
pub(super) async fn apply_together<S: Nos>(
    switch: &S,
    steps: Vec<Step>,
    limits: Limits,
) -> Result<Tried, Cut> {
    let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let limit = limits.step + (limits.step / STEPS_PER_LIMIT).saturating_mul(count);
    let applied = timeout(limit, switch.apply_all(&steps)).await;
    match applied {
        Ok(Ok(())) => Ok(steps.into_iter().map(|step| (step, None)).collect()),
        cut => Err(Cut {
            steps,
            has_stalled: cut.is_err(),
        }),
    }
}

/// Applies the steps of a round, each with its own result, until so many have stalled.
pub(super) async fn apply_one_by_one<S: Nos>(
    switch: &S,
    steps: Vec<Step>,
    stalls_max: usize,
    limits: Limits,
) -> Tried {
    let mut tried = Vec::new();
    for step in steps {
        let applied = timeout(limits.step, switch.apply(&step)).await;
        let failure = match applied {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Failure::Refused(causes(&error))),
            Err(_) => Some(Failure::Stalled(limits.step)),
        };
        tried.push((step, failure));
        if stalls(&tried) >= stalls_max {
            break;
        }
    }
    tried
}

/// Number of steps that the time limit cut.
pub(super) fn stalls(tried: &[(Step, Option<Failure>)]) -> usize {
    let of = tried.iter();
    of.filter(|(_, failure)| matches!(failure, Some(Failure::Stalled(_))))
        .count()
}

/// An error with its causes in one line.
fn causes(error: &NosError) -> String {
    let mut out = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        out.push_str(": ");
        out.push_str(&cause.to_string());
        next = cause.source();
    }
    out
}
