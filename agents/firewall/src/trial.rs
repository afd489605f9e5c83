//! Applies a configuration on trial: probe, confirm, or roll back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::netlink::Kernel;
use crate::plan::Change;
use crate::state::{FirewallState, Loaded};

/// Time for a probe to connect. A rule that drops its packets shows only by this.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause between two looks for a confirmation.
const CONFIRM_POLL: Duration = Duration::from_millis(100);

/// The end of a trial.
#[derive(Debug)]
pub enum Outcome {
    /// The configuration is in force, and kept as the last good one.
    Kept(Vec<Change>),
    /// The rules from before are in force again.
    RolledBack(String),
}

/// Conditions of a trial.
#[derive(Clone, Debug, Default)]
pub struct TrialConditions {
    /// Addresses that must accept a TCP connection afterwards.
    pub probes: Vec<SocketAddr>,
    /// Time for the confirmation. `None` needs none.
    pub confirm_within: Option<Duration>,
}

/// Applies a configuration, and replaces it by the last good one if its conditions do not hold or
/// the trial is stopped.
///
/// # Errors
/// The kernel refused the rules; those from before are still in force. Or the rules from before
/// cannot be restored: then the new ones are.
pub async fn apply(
    kernel: &Kernel,
    state: &FirewallState,
    loaded: &Loaded,
    conditions: &TrialConditions,
    stop: &CancellationToken,
) -> Result<Outcome> {
    let changes = kernel.enforce(&loaded.admitted.rules)?.changes;
    match refutation(state, conditions, stop).await {
        Ok(None) => {
            state.keep(loaded)?;
            Ok(Outcome::Kept(changes))
        }
        Ok(Some(reason)) => {
            roll_back(kernel, state)?;
            Ok(Outcome::RolledBack(reason))
        }
        Err(error) => {
            roll_back(kernel, state)?;
            Err(error)
        }
    }
}

/// Applies the last good configuration; without one, rules that drop everything.
///
/// # Errors
/// The kernel refused them.
pub fn roll_back(kernel: &Kernel, state: &FirewallState) -> Result<()> {
    let admitted = match state.last_good() {
        Ok(Some(loaded)) => loaded.admitted,
        Ok(None) => {
            warn!("there is no last good configuration: every forwarded packet is dropped");
            Arc::default()
        }
        Err(error) => {
            warn!(
                error = format!("{error:#}"),
                "every forwarded packet is dropped"
            );
            Arc::default()
        }
    };
    kernel
        .enforce(&admitted.rules)
        .context("cannot restore the last good rules")?;
    Ok(())
}

/// The reason why the new rules cannot stay. `None` if they can.
async fn refutation(
    state: &FirewallState,
    conditions: &TrialConditions,
    stop: &CancellationToken,
) -> Result<Option<String>> {
    for probe in &conditions.probes {
        if let Some(reason) = failed_probe(*probe).await {
            return Ok(Some(reason));
        }
    }
    let Some(within) = conditions.confirm_within else {
        return Ok(None);
    };
    let id = state.begin_trial()?;
    info!(
        seconds = within.as_secs(),
        "the rules are in force; confirm them with `metalmesh-firewall confirm`"
    );
    let deadline = Instant::now() + within;
    let reason = loop {
        if state.is_confirmed(&id)? {
            break None;
        }
        if stop.is_cancelled() {
            break Some("the trial was interrupted".to_owned());
        }
        if Instant::now() >= deadline {
            let reason = format!("nobody confirmed them within {} s", within.as_secs());
            break Some(reason);
        }
        tokio::select! {
            () = sleep(CONFIRM_POLL) => {}
            () = stop.cancelled() => {}
        }
    };
    state.end_trial()?;
    Ok(reason)
}

async fn failed_probe(probe: SocketAddr) -> Option<String> {
    match timeout(PROBE_TIMEOUT, TcpStream::connect(probe)).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("the probe of {probe} failed: {error}")),
        Err(_) => Some(format!(
            "the probe of {probe} got no answer within {} s",
            PROBE_TIMEOUT.as_secs()
        )),
    }
}
