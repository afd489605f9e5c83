//! The reconciliation loop: observe, plan, apply, verify.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agents_kit::Steps;
use agents_nos::{Nos, NosError, Observation, Problem, plan};
use base_runtime::{Backoff, Chain};
use proto_mesh::{FabricMode, PortPlace, SwitchDesired};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::Config;
use crate::intent::intent;
use crate::traces::PortTraces;

/// Longest time between two passes, so that drift without an event is found as well.
const IDLE: Duration = Duration::from_secs(10);
/// Pause after an event. An own change causes several events, which must lead to one pass.
const SETTLE: Duration = Duration::from_millis(100);
/// Pauses after failed passes.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(10));

/// Problems of one pass in a report. Further ones are counted: a desired state of 500 VRFs for a
/// switch without VRFs would otherwise fill every report.
const PROBLEMS_SHOWN: usize = 20;

/// The result of the last pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The observed state.
    pub(crate) state: Observation,
    /// Term and generation of the desired state that the switch is in.
    pub(crate) applied: (u64, u64),
    /// VNIs of the tenants whose firewalls are to be in the default VRF, by port. `None` without
    /// EVPN, where no port belongs there.
    pub(crate) underlay: Option<BTreeMap<String, u32>>,
    /// Duration of the last pass with changes.
    pub(crate) took: Duration,
    /// The reason why the switch is not as desired, or not in all parts. Empty if it is.
    pub(crate) error: String,
}

/// The failure of a pass.
#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error("switch")]
    Nos(#[from] NosError),
    #[error("the switch did not accept {0} of the changes")]
    Unverified(usize),
}

/// The reconciliation loop of one switch.
pub(crate) struct Reconciler<S> {
    pub(crate) config: Arc<Config>,
    pub(crate) switch: Arc<S>,
    pub(crate) desired: watch::Receiver<Option<SwitchDesired>>,
    pub(crate) outcome: watch::Sender<Outcome>,
    pub(crate) steps: Steps,
    pub(crate) traces: PortTraces,
}

impl<S: Nos> Reconciler<S> {
    /// Runs passes until `stop`. A running pass is finished: half of a plan could leave a port
    /// down.
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
                    warn!(error = %error, "reconciliation failed");
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
                // After a failure events do not shorten the pause: the failed changes cause events
                // themselves, and the loop would spin.
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
            // Without desired state from control or cache the switch must stay as it is: the agent
            // may have lost its state directory while tenants' ports are in use.
            self.publish(Outcome {
                state: observed,
                ..Outcome::default()
            });
            return Ok(());
        };
        let capabilities = self.switch.capabilities();
        let (wanted, mut problems) = intent(desired, &self.config, capabilities);
        let todo = plan(&observed.model, &wanted, capabilities);
        problems.extend(todo.problems.iter().map(Problem::to_string));
        let mut state = observed;
        let mut took = self.outcome.borrow().took;
        if !todo.steps.is_empty() {
            for step in &todo.steps {
                info!(?step, generation = desired.generation, "apply");
                self.switch.apply(step).await?;
            }
            // Verified by a second observation: control hands the port to a tenant on the report,
            // and an accepted netlink message is no proof that the device is configured.
            state = self.switch.observe().await?;
            let rest = plan(&state.model, &wanted, capabilities).steps;
            if !rest.is_empty() {
                return Err(PassError::Unverified(rest.len()));
            }
            took = started.elapsed();
        }
        let applied = (desired.term, desired.generation);
        let error = summary(&problems);
        self.traces.applied(desired.generation, &error);
        self.publish(Outcome {
            state,
            applied,
            took,
            error,
            underlay: underlay(desired),
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

fn underlay(desired: &SwitchDesired) -> Option<BTreeMap<String, u32>> {
    if desired.fabric() != FabricMode::Evpn {
        return None;
    }
    let ports = desired.ports.iter();
    let ports = ports.filter(|port| port.place() == PortPlace::Underlay);
    Some(ports.map(|port| (port.name.clone(), port.vni)).collect())
}

/// The problems in one line, the first ones in full.
fn summary(problems: &[String]) -> String {
    let shown = problems.iter().take(PROBLEMS_SHOWN).cloned();
    let mut shown: Vec<String> = shown.collect();
    let more = problems.len() - shown.len();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join("; ")
}
