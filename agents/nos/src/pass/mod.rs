//! One pass: the steps from the observed to a desired state, applied and verified.

mod schedule;

use std::time::Duration;

pub use schedule::{HeldStep, Schedule, schedule};
use tokio::time::timeout;
use tracing::info;

use crate::back_end::{Nos, NosError};
use crate::capability::Capability;
use crate::dependency::Dependencies;
use crate::effect::is_in_effect;
use crate::fit::{Fitted, fit};
use crate::model::SwitchModel;
use crate::observation::Observation;
use crate::plan::steps_to;
use crate::problem::Problem;
use crate::step::Step;

/// Rounds of apply and observe in one pass. A plan needs about eight; more means that somebody
/// changes the switch at the same time, and the next pass goes on.
const ROUNDS_MAX: usize = 32;
/// Steps of one pass that may be cut by the time limit. A switch that answers none of them would
/// otherwise hold the agent for the limit times the number of steps.
const STALLS_MAX: usize = 3;

/// Time limits of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for one step. A longer one is cut and has failed.
    pub step: Duration,
    /// Time for one observation.
    pub observe: Duration,
}

/// A step that the switch did not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStep {
    /// The step.
    pub step: Step,
    /// The reason.
    pub failure: Failure,
}

/// The reason why a step is not in effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The switch refused it, with this error and its causes.
    #[error("{0}")]
    Refused(String),
    /// The switch did not answer within the time limit.
    #[error("no answer within {0:?}")]
    Stalled(Duration),
    /// The switch accepted the step, and an observation shows that it is not in effect.
    #[error("accepted, but not in effect")]
    Unverified,
}

/// The result of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The last observed state.
    pub observation: Observation,
    /// Parts of the desired state that this switch cannot have.
    pub problems: Vec<Problem>,
    /// Steps that are in effect since this pass.
    pub done: Vec<Step>,
    /// Steps that failed. Each was tried once.
    pub failed: Vec<FailedStep>,
    /// Steps that wait for a failed or withheld one.
    pub held: Vec<HeldStep>,
    /// Steps that are left, with the failed, held and withheld ones. Empty if the switch is as
    /// desired, as far as it can be.
    pub rest: Vec<Step>,
}

/// Observes within a time limit.
///
/// # Errors
/// When the back-end fails, or does not answer in time.
pub async fn observe<S: Nos>(switch: &S, limits: Limits) -> Result<Observation, NosError> {
    let observed = timeout(limits.observe, switch.observe()).await;
    observed.unwrap_or(Err(NosError::NoAnswer(limits.observe)))
}

/// Brings a switch from an observed to a desired state, as far as it goes.
///
/// Steps are applied in rounds. After each round the switch is observed and planned again: a step
/// goes only when an observation shows those in effect that it depends on ([`schedule`]). A step
/// that fails, stalls, or is accepted without effect holds those that depend on it, and nothing
/// else; the caller tries it again with a later pass. `withheld` steps are not tried.
///
/// # Errors
/// When an observation fails. Steps may have been applied.
pub async fn run_pass<S: Nos>(
    switch: &S,
    desired: &SwitchModel,
    observed: Observation,
    withheld: &[Step],
    limits: Limits,
) -> Result<Passed, NosError> {
    let mut pass = Pass::new(observed);
    let capabilities = switch.capabilities();
    for round in 1.. {
        let now = pass.next_steps(desired, withheld, capabilities);
        if now.is_empty() || round > ROUNDS_MAX || pass.stalls() >= STALLS_MAX {
            break;
        }
        let mut tried = Vec::new();
        for step in now {
            info!(?step, "apply");
            let applied = timeout(limits.step, switch.apply(&step)).await;
            let failure = match applied {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(Failure::Refused(causes(&error))),
                Err(_) => Some(Failure::Stalled(limits.step)),
            };
            let has_stalled = matches!(failure, Some(Failure::Stalled(_)));
            tried.push((step, failure));
            if has_stalled && pass.stalls() + stalls(&tried) >= STALLS_MAX {
                break;
            }
        }
        pass.observation = observe(switch, limits).await?;
        pass.judge(tried);
    }
    Ok(pass.end(desired, capabilities))
}

/// A pass in progress.
struct Pass {
    observation: Observation,
    problems: Vec<Problem>,
    done: Vec<Step>,
    failed: Vec<FailedStep>,
    held: Vec<HeldStep>,
}

impl Pass {
    fn new(observation: Observation) -> Self {
        Self {
            observation,
            problems: Vec::new(),
            done: Vec::new(),
            failed: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Plans from the last observation and returns the steps that can go now.
    fn next_steps(
        &mut self,
        desired: &SwitchModel,
        withheld: &[Step],
        capabilities: &[Capability],
    ) -> Vec<Step> {
        let observed = &self.observation.model;
        let Fitted { model, problems } = fit(observed, desired, capabilities);
        self.problems = problems;
        let steps = steps_to(observed, &model);
        // A step that was in effect and is planned again was undone by somebody in between. Trying
        // it for ever would hold the agent in this pass.
        for again in steps.iter().filter(|step| self.done.contains(step)) {
            self.failed.push(FailedStep {
                step: again.clone(),
                failure: Failure::Unverified,
            });
        }
        let failed = &self.failed;
        self.done
            .retain(|step| !failed.iter().any(|f| f.step == *step));
        let undone =
            |step: &Step| withheld.contains(step) || failed.iter().any(|f| f.step == *step);
        let dependencies = Dependencies {
            observed,
            target: &model,
        };
        let Schedule { now, held } = schedule(steps, undone, dependencies);
        self.held = held;
        now
    }

    /// Takes the tried steps as done or failed. The observation counts, not the answer: a step may
    /// be in effect although its answer was an error, and the other way round.
    fn judge(&mut self, tried: Vec<(Step, Option<Failure>)>) {
        for (step, failure) in tried {
            if is_in_effect(&step, &self.observation.model) {
                self.done.push(step);
                continue;
            }
            let failure = failure.unwrap_or(Failure::Unverified);
            self.failed.push(FailedStep { step, failure });
        }
    }

    fn stalls(&self) -> usize {
        let of = self.failed.iter();
        of.filter(|failed| matches!(failed.failure, Failure::Stalled(_)))
            .count()
    }

    fn end(self, desired: &SwitchModel, capabilities: &[Capability]) -> Passed {
        let Fitted { model, .. } = fit(&self.observation.model, desired, capabilities);
        let rest = steps_to(&self.observation.model, &model);
        let still = |step: &Step| rest.contains(step);
        let mut failed = self.failed;
        failed.retain(|failed| still(&failed.step));
        Passed {
            observation: self.observation,
            problems: self.problems,
            done: self.done,
            failed,
            held: self.held,
            rest,
        }
    }
}

fn stalls(tried: &[(Step, Option<Failure>)]) -> usize {
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
