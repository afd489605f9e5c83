//! One pass: the steps from the observed to a desired state, applied and verified.

mod apply;
mod result;
mod schedule;

use std::time::Duration;

use apply::{Cut, Tried, apply_one_by_one, apply_together, stalls};
pub use result::{FailedStep, Failure, Passed};
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

/// Observes within a time limit.
///
/// # Errors
/// When the back-end fails, or does not answer in time.
pub async fn observe<S: Nos>(switch: &S, limits: Limits) -> Result<Observation, NosError> {
    let observed = timeout(limits.observe, switch.observe()).await;
    observed.unwrap_or(Err(NosError::NoAnswer(limits.observe)))
}

/// Observes the effect of steps within a time limit.
async fn verify<S: Nos>(switch: &S, limits: Limits) -> Result<Observation, NosError> {
    let observed = timeout(limits.observe, switch.observe_applied()).await;
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
        if now.is_empty() || round > ROUNDS_MAX || pass.stalls >= STALLS_MAX {
            break;
        }
        for step in &now {
            info!(?step, "apply");
        }
        let tried = if pass.is_one_by_one || now.len() == 1 {
            Ok(apply_one_by_one(switch, now, STALLS_MAX - pass.stalls, limits).await)
        } else {
            apply_together(switch, now, limits).await
        };
        pass.observation = verify(switch, limits).await?;
        match tried {
            Ok(tried) => pass.judge(tried),
            Err(Cut { steps, has_stalled }) => {
                pass.stalls += usize::from(has_stalled);
                pass.keep_done(steps);
                // Which one fails, the next round tells.
                pass.is_one_by_one = true;
            }
        }
    }
    Ok(pass.end(withheld))
}

/// A pass in progress.
struct Pass {
    observation: Observation,
    problems: Vec<Problem>,
    done: Vec<Step>,
    failed: Vec<FailedStep>,
    held: Vec<HeldStep>,
    /// The last plan.
    rest: Vec<Step>,
    /// `true` once steps that were applied at once have failed.
    is_one_by_one: bool,
    /// Number of cut steps, also of those that are in effect.
    stalls: usize,
}

impl Pass {
    fn new(observation: Observation) -> Self {
        Self {
            observation,
            problems: Vec::new(),
            done: Vec::new(),
            failed: Vec::new(),
            held: Vec::new(),
            rest: Vec::new(),
            is_one_by_one: false,
            stalls: 0,
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
        self.rest.clone_from(&steps);
        let Schedule { now, held } = schedule(steps, undone, dependencies);
        self.held = held;
        now
    }

    /// Takes the tried steps as done or failed. The observation counts, not the answer: a step may
    /// be in effect although its answer was an error, and the other way round.
    fn judge(&mut self, tried: Tried) {
        self.stalls += stalls(&tried);
        for (step, failure) in tried {
            if is_in_effect(&step, &self.observation.model) {
                self.done.push(step);
                continue;
            }
            let failure = failure.unwrap_or(Failure::Unverified);
            self.failed.push(FailedStep { step, failure });
        }
    }

    /// Takes those of the steps as done that are in effect.
    fn keep_done(&mut self, steps: Vec<Step>) {
        let seen = &self.observation.model;
        let done = steps.into_iter().filter(|step| is_in_effect(step, seen));
        self.done.extend(done);
    }

    /// The result, after a plan that no step follows.
    fn end(self, withheld: &[Step]) -> Passed {
        let mut failed = self.failed;
        failed.retain(|failed| self.rest.contains(&failed.step));
        let is_known = |step: &Step| {
            withheld.contains(step)
                || failed.iter().any(|failed| failed.step == *step)
                || self.held.iter().any(|held| held.step == *step)
        };
        let untried = self.rest.iter().filter(|step| !is_known(step));
        Passed {
            observation: self.observation,
            problems: self.problems,
            done: self.done,
            untried: untried.cloned().collect(),
            failed,
            held: self.held,
            rest: self.rest,
        }
    }
}
