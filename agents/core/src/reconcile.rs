//! The reconciliation loop: observe, plan, apply, verify.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agents_kit::Steps;
use agents_nos::{
    Failure, Limits, Nos, NosError, Observation, Passed, Step, SwitchModel, SwitchObject,
    find_drift, fit, observe, plan, run_pass, steps_to_hold,
};
use base_runtime::{Backoff, Chain};
use base_telemetry::traces::now_ns;
use proto_mesh::SwitchDesired;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{Config, DriftPolicy};
use crate::drift_log::DriftEntry;
use crate::intent::intent;
use crate::pass_memory::{LastPass, PassMemory};
use crate::problems::Problems;
use crate::suspensions::Suspensions;
use crate::traces::PortTraces;

/// Longest time between two passes, so that drift without an event is found within five seconds.
const IDLE: Duration = Duration::from_secs(4);
/// Pause after an event. An own change causes several events, which must lead to one pass.
const SETTLE: Duration = Duration::from_millis(100);
/// Pauses after passes that did not come to their end.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(10));
/// Time that a step and an observation get. A step takes milliseconds; FRR has answered within a
/// second under load.
const LIMIT: Duration = Duration::from_secs(5);
/// Doublings of [`LIMIT`] at most.
const DOUBLINGS_MAX: u32 = 4;

/// The result of the last pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The observed state.
    pub(crate) state: Observation,
    /// Term and generation of the desired state that the switch is in.
    pub(crate) applied: (u64, u64),
    /// Duration of the last pass with changes.
    pub(crate) took: Duration,
    /// The reason why the switch is not as desired, or not in all parts. Empty if it is.
    pub(crate) error: String,
    /// The same, object by object.
    pub(crate) problems: Problems,
    /// Changes by hand of late.
    pub(crate) drift: Vec<DriftEntry>,
}

/// The reconciliation loop of one switch.
pub(crate) struct Reconciler<S> {
    pub(crate) config: Arc<Config>,
    pub(crate) switch: Arc<S>,
    pub(crate) desired: watch::Receiver<Option<SwitchDesired>>,
    /// Sessions that have to go, whatever control desires.
    pub(crate) suspended: watch::Receiver<Suspensions>,
    pub(crate) outcome: watch::Sender<Outcome>,
    pub(crate) steps: Steps,
    pub(crate) traces: PortTraces,
    pub(crate) memory: PassMemory,
}

/// The limits after so many passes in a row that failed: each doubles them. A switch whose processor
/// is busy would otherwise never be read to the end.
fn limits(failures: u32) -> Limits {
    let limit = LIMIT * (1 << failures.min(DOUBLINGS_MAX));
    Limits {
        step: limit,
        observe: limit,
    }
}

impl<S: Nos> Reconciler<S> {
    /// Runs passes until `stop`. A running pass is finished: half of a plan could leave a port
    /// down.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut failures = 0_u32;
        loop {
            let desired = self.desired.borrow_and_update().clone();
            let passed = self.pass(desired.as_ref(), limits(failures)).await;
            self.steps.ended("reconcile", &passed);
            failures = match passed {
                Ok(()) => 0,
                Err(error) => {
                    let error = Chain(&error).to_string();
                    warn!(error = %error, "reconciliation failed");
                    self.outcome.send_if_modified(|outcome| {
                        let news = outcome.error != error;
                        outcome.error = error;
                        news
                    });
                    failures.saturating_add(1)
                }
            };
            let rest = self.rest(failures);
            tokio::select! {
                () = stop.cancelled() => return,
                changed = self.desired.changed() => if changed.is_err() { return },
                changed = self.suspended.changed() => if changed.is_err() { return },
                // After a failed observation events do not shorten the pause: the loop would spin.
                () = self.switch.changed(), if failures == 0 => sleep(SETTLE).await,
                () = sleep(rest) => {}
            }
        }
    }

    /// The time until the next pass, unless an event comes first.
    fn rest(&self, failures: u32) -> Duration {
        if failures > 0 {
            return BACKOFF.pause(failures);
        }
        if self.memory.unfinished > 0 {
            return BACKOFF.pause(self.memory.unfinished).min(IDLE);
        }
        let due = self.memory.retries.due();
        let due = due.map(|due| due.saturating_duration_since(Instant::now()));
        due.map_or(IDLE, |due| due.min(IDLE))
    }

    async fn pass(
        &mut self,
        desired: Option<&SwitchDesired>,
        limits: Limits,
    ) -> Result<(), NosError> {
        let started = Instant::now();
        if let Some(desired) = desired {
            self.traces.wanted(desired);
        }
        let observed = observe(self.switch.as_ref(), limits).await?;
        let Some(desired) = desired else {
            // Without desired state from control or cache the switch must stay as it is: the agent
            // may have lost its state directory while tenants' ports are in use.
            self.publish(Outcome {
                state: observed,
                ..Outcome::default()
            });
            return Ok(());
        };
        let (mut wanted, mut invalid) = intent(desired, &self.config);
        invalid.extend(self.suspended.borrow_and_update().apply(&mut wanted));
        self.notice_drift(&observed.model);
        let withheld = self.withheld(&observed.model, &wanted);
        let mut last = LastPass {
            wanted: wanted.clone(),
            left: None,
        };
        self.memory.last = None;
        let switch = self.switch.as_ref();
        let passed = run_pass(switch, &wanted, observed, &withheld, limits).await;
        last.left = passed.as_ref().ok().map(|passed| passed.rest.clone());
        self.memory.last = Some(last);
        let passed = passed?;
        self.count(&passed);
        self.conclude(desired, passed, invalid, started);
        Ok(())
    }

    /// Notes what somebody changed since the last pass, and holds it if the site wants that.
    fn notice_drift(&mut self, observed: &SwitchModel) {
        let Some(LastPass {
            wanted,
            left: Some(left),
        }) = &self.memory.last
        else {
            return;
        };
        let capabilities = self.switch.capabilities();
        for drift in find_drift(observed, wanted, left, capabilities) {
            let is_held = self.config.drift == DriftPolicy::Report && !drift.is_unsafe;
            if is_held {
                self.memory.held.insert(drift.object.clone());
            }
            if self.memory.drift.note(&drift, now_ns() / 1_000_000) {
                let outcome = if is_held { "held" } else { "seen" };
                self.steps.count("drift", outcome);
                warn!(
                    object = %drift.object, seen = drift.seen, desired = drift.desired, is_held,
                    "the switch was changed by hand"
                );
            }
        }
    }

    /// The steps that are not tried in this pass: held by policy, or in a pause after a failure.
    fn withheld(&mut self, observed: &SwitchModel, wanted: &SwitchModel) -> Vec<Step> {
        let capabilities = self.switch.capabilities();
        let PassMemory {
            last,
            retries,
            held,
            ..
        } = &mut self.memory;
        let mut out = retries.pausing(Instant::now());
        if held.is_empty() {
            return out;
        }
        if let Some(last) = last {
            // An object that control changes is control's again.
            let before = fit(observed, &last.wanted, capabilities).model;
            let changed = plan(&before, wanted, capabilities).steps;
            held.retain(|object| changed.iter().all(|step| step.object() != *object));
        }
        let is_held = |object: &SwitchObject| held.contains(object);
        out.extend(steps_to_hold(observed, wanted, is_held, capabilities));
        out
    }

    fn count(&self, passed: &Passed) {
        for _ in &passed.done {
            self.steps.count("switch_step", "done");
        }
        for failed in &passed.failed {
            let outcome = match failed.failure {
                Failure::Refused(_) => "failed",
                Failure::Stalled(_) => "stalled",
                Failure::Unverified => "unverified",
            };
            self.steps.count("switch_step", outcome);
        }
    }

    /// Takes the end of a pass into memory, and publishes it.
    fn conclude(
        &mut self,
        desired: &SwitchDesired,
        passed: Passed,
        invalid: Vec<String>,
        started: Instant,
    ) {
        let memory = &mut self.memory;
        let left: BTreeSet<SwitchObject> = passed.rest.iter().map(Step::object).collect();
        memory.held.retain(|object| left.contains(object));
        for _ in 0..memory.drift.update(|object| !left.contains(object)) {
            self.steps.count("drift", "healed");
        }
        memory.unfinished = match passed.untried.is_empty() {
            true => 0,
            false => memory.unfinished.saturating_add(1),
        };
        let failed = memory.retries.take(&passed, Instant::now());
        for (object, retry) in memory.retries.iter() {
            if failed.contains(object) {
                let (attempts, error) = (retry.attempts, &retry.failure);
                warn!(%object, attempts, %error, "the switch did not take a change");
            }
        }
        let problems = memory.problems(&passed, invalid);
        let error = problems.error();
        let (mut applied, mut took) = {
            let before = self.outcome.borrow();
            (before.applied, before.took)
        };
        if passed.rest.is_empty() {
            applied = (desired.term, desired.generation);
            self.traces.applied(desired.generation, &error);
        }
        if !passed.done.is_empty() {
            took = started.elapsed();
            let steps = passed.done.len();
            info!(steps, generation = desired.generation, "applied");
        }
        self.publish(Outcome {
            state: passed.observation,
            applied,
            took,
            error,
            problems,
            drift: {
                let held = &self.memory.held;
                self.memory.drift.entries(|object| held.contains(object))
            },
        });
    }

    fn publish(&self, outcome: Outcome) {
        self.outcome.send_if_modified(|old| {
            let news = *old != outcome;
            *old = outcome;
            news
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_that_failed_doubles_the_limits() {
        for (failures, seconds) in [(0, 5), (1, 10), (2, 20), (4, 80), (5, 80), (u32::MAX, 80)] {
            let limits = limits(failures);
            let wanted = Duration::from_secs(seconds);
            assert_eq!([limits.observe, limits.step], [wanted; 2], "{failures}");
        }
    }
}
