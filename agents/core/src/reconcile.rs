//! One pass after the other: observe, plan, apply, verify.

use std::sync::Arc;
use std::time::Duration;

use agents_kit::Steps;
use agents_nos::{OsError, SwitchOs, SwitchState, plan};
use base_runtime::{Backoff, Chain};
use proto_mesh::SwitchDesired;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::Config;
use crate::intent::intent;
use crate::traces::PortTraces;

/// A pass without any news, so that drift in what sends no events is found too.
const IDLE: Duration = Duration::from_secs(10);
/// One change of ours makes several events; they lead to one more pass.
const SETTLE: Duration = Duration::from_millis(100);
/// Pauses after passes that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(10));

/// What the last pass found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) state: SwitchState,
    /// Term and generation that the switch is at.
    pub(crate) applied: (u64, u64),
    /// How long the last pass that changed something took.
    pub(crate) took: Duration,
    /// Why the switch is not, or not wholly, as desired; empty when it is.
    pub(crate) error: String,
}

#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error("switch")]
    Os(#[from] OsError),
    #[error("the switch did not take {0} of the changes")]
    Unverified(usize),
}

pub(crate) struct Reconciler<S> {
    pub(crate) config: Arc<Config>,
    pub(crate) switch: Arc<S>,
    pub(crate) desired: watch::Receiver<Option<SwitchDesired>>,
    pub(crate) outcome: watch::Sender<Outcome>,
    pub(crate) steps: Steps,
    pub(crate) traces: PortTraces,
}

impl<S: SwitchOs> Reconciler<S> {
    /// Passes until `stop`; a pass that has begun is finished.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut failures = 0_u32;
        loop {
            let desired = self.desired.borrow_and_update().clone();
            let passed = self.pass(desired.as_ref()).await;
            self.steps.ended("reconcile", &passed);
            failures = match passed {
                Ok(()) => 0,
                Err(error) => {
                    let error = Chain(&error).to_string();
                    warn!(error = %error, "pass failed");
                    self.outcome.send_if_modified(|o| {
                        let news = o.error != error;
                        o.error = error;
                        news
                    });
                    failures.saturating_add(1)
                }
            };
            let rest = if failures == 0 {
                IDLE
            } else {
                BACKOFF.pause(failures)
            };
            tokio::select! {
                () = stop.cancelled() => return,
                changed = self.desired.changed() => if changed.is_err() { return },
                // A switch that fails is left in peace for a while, whatever it reports.
                () = self.switch.changed(), if failures == 0 => sleep(SETTLE).await,
                () = sleep(rest) => {}
            }
        }
    }

    async fn pass(&mut self, desired: Option<&SwitchDesired>) -> Result<(), PassError> {
        let started = Instant::now();
        if let Some(desired) = desired {
            self.traces.wanted(desired);
        }
        let observed = self.switch.observe().await?;
        let Some(desired) = desired else {
            // Neither control nor cache has said anything yet: look, do not touch.
            self.publish(Outcome {
                state: observed,
                ..Outcome::default()
            });
            return Ok(());
        };
        let (intent, mut problems) = intent(desired, &self.config);
        let todo = plan(&observed, &intent);
        problems.extend(todo.problems);
        let mut state = observed;
        let mut took = self.outcome.borrow().took;
        if !todo.deltas.is_empty() {
            for delta in &todo.deltas {
                info!(?delta, generation = desired.generation, "apply");
                self.switch.apply(delta).await?;
            }
            state = self.switch.observe().await?;
            let rest = plan(&state, &intent).deltas;
            if !rest.is_empty() {
                return Err(PassError::Unverified(rest.len()));
            }
            took = started.elapsed();
        }
        let applied = (desired.term, desired.generation);
        let error = problems.join("; ");
        self.traces.applied(desired.generation, &error);
        self.publish(Outcome {
            state,
            applied,
            took,
            error,
        });
        Ok(())
    }

    fn publish(&self, outcome: Outcome) {
        self.outcome.send_if_modified(|old| {
            let news = *old != outcome;
            *old = outcome;
            news
        });
    }
}
