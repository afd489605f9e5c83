//! metalmesh-core: the agent of one switch.
//!
//! The agent registers the switch with its ports, follows the desired state that control pushes,
//! and keeps the switch in it: every change, by control, an operator or a cable, leads to one more
//! pass of observe, plan, apply, verify. The observed state goes to control on change and every ten
//! seconds, with the LLDP neighbours of each port.
//!
//! Invariants:
//! - Desired state older than the newest seen is never applied ([`run_desired`] fences by Raft term
//!   and generation).
//! - An agent that starts without control applies the last state that control sent it
//!   ([`Agent::last_good`]).
//! - Without any desired state the agent observes and changes nothing.
//! - Only the configured ports and uplinks, and the devices of segments, are changed
//!   ([`agents_nos`]).
//! - A report names a generation as applied only after an observation that needs no further change.
//! - An object that the switch does not take is tried again with pauses, is reported with its reason,
//!   and keeps no unrelated object from its state ([`agents_nos::run_pass`]).
//! - A change by hand is reported, and healed unless the site holds it ([`config::DriftPolicy`]);
//!   one that would let tenants meet is always healed.
//! - With `[relay]` the DHCP requests of unprovisioned machines go to the boot server with the port
//!   that they came in at ([`relay`]).
//!
//! Entry points: [`config::Config`], [`run`], [`run_watched`].

pub mod config;
mod control_listeners;
mod drift_log;
mod firewall_routes;
mod gateway;
mod intent;
mod neighbours;
mod pass_memory;
mod problems;
mod reconcile;
pub mod relay;
mod report;
mod retries;
mod route_audit;
mod route_limit;
mod routing;
mod suspension;
mod suspensions;
mod telemetry;
mod traces;

use std::sync::Arc;

use agents_kit::{Agent, Origin, run_desired};
use agents_nos::Nos;
use agents_nos::lldp::Neighbours;
use config::Config;
pub use control_listeners::control_listeners;
pub use intent::intent;
use pass_memory::PassMemory;
use proto_mesh::{SwitchDesired, SwitchDesiredRequest, SwitchServiceClient};
use route_limit::RouteLimiter;
use suspensions::Suspensions;
use telemetry::Sample;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use traces::PortTraces;
use tracing::info;

/// Runs the agent on a switch until `stop`. The switch keeps forwarding in its last state
/// afterwards.
pub async fn run<S: Nos + 'static>(
    agent: Agent,
    config: Config,
    switch: S,
    stop: CancellationToken,
) {
    let (verified, _) = watch::channel(false);
    run_watched(agent, config, switch, verified, stop).await;
}

/// Runs the agent as [`run`] does. `verified` becomes `true` after the first pass that found the switch as
/// control desires it.
pub async fn run_watched<S: Nos + 'static>(
    agent: Agent,
    config: Config,
    switch: S,
    verified: watch::Sender<bool>,
    stop: CancellationToken,
) {
    let switch = Arc::new(switch);
    let config = Arc::new(config);
    let of_switch = switch.neighbours();
    let (desired_in, desired) = watch::channel(None);
    let (observed_in, observed) = watch::channel(reconcile::Outcome::default());
    let (suspended_in, suspended) = watch::channel(Suspensions::default());
    let limiter = RouteLimiter::new(desired.clone(), suspended_in);
    let mut tasks = JoinSet::new();

    let reconciler = reconcile::Reconciler {
        config: Arc::clone(&config),
        switch: Arc::clone(&switch),
        desired,
        suspended,
        outcome: observed_in,
        steps: agent.steps(),
        traces: PortTraces::new(agent.spans(), agent.identity().id.clone()),
        memory: PassMemory::default(),
    };
    tasks.spawn(reconciler.run(stop.clone()));
    let neighbours = of_switch.unwrap_or_else(|| {
        let neighbours = Neighbours::default();
        tasks.spawn(neighbours::run(
            agent.identity().id.clone(),
            Arc::clone(&config),
            observed.clone(),
            neighbours.clone(),
            stop.clone(),
        ));
        neighbours
    });
    start_relay(&agent, &config, &observed, &mut tasks, &stop);
    tasks.spawn(tell_verified(observed.clone(), verified));
    let (told, telemetry) = watch::channel(Sample::default());
    let read = telemetry::run(Arc::clone(&switch), told, limiter, stop.clone());
    tasks.spawn(read);
    if !agent.is_offline() {
        tasks.spawn(report::register(
            agent.client(),
            Arc::clone(&config),
            Arc::clone(&switch),
            observed.clone(),
            stop.clone(),
        ));
        let sources = report::Sources {
            observed,
            neighbours,
            telemetry,
        };
        tasks.spawn(report::run(agent.client(), config, sources, stop.clone()));
    }
    tasks.spawn(follow(agent, desired_in, stop));
    // A panic in one task must end the process: an agent without its reconciler would look alive to
    // control and change nothing.
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Tells when the first pass has verified the switch, until the passes end.
async fn tell_verified(
    mut observed: watch::Receiver<reconcile::Outcome>,
    verified: watch::Sender<bool>,
) {
    loop {
        let (_, generation) = observed.borrow_and_update().applied;
        verified.send_replace(generation > 0);
        if observed.changed().await.is_err() {
            return;
        }
    }
}

/// Starts the relay of DHCP requests, if the site wants one. It serves also while control is away.
fn start_relay(
    agent: &Agent,
    config: &Config,
    observed: &watch::Receiver<reconcile::Outcome>,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let Some(settings) = &config.relay else {
        return;
    };
    match relay::Relay::new(&agent.identity().id, config, settings) {
        Ok(relay) => {
            let stop = stop.child_token();
            tasks.spawn(relay::run(relay, agent.steps(), observed.clone(), stop));
        }
        Err(error) => tracing::error!(error, "no DHCP relay"),
    }
}

async fn follow(
    agent: Agent,
    desired: watch::Sender<Option<SwitchDesired>>,
    stop: CancellationToken,
) {
    let client: SwitchServiceClient = agent.client();
    let open = || {
        let generation = desired.borrow().as_ref().map_or(0, |d| d.generation);
        let client = client.clone();
        async move { client.desired(SwitchDesiredRequest { generation }).await }
    };
    let on = |state: SwitchDesired, origin: Origin| {
        info!(
            term = state.term,
            generation = state.generation,
            ?origin,
            "desired state"
        );
        desired.send_replace(Some(state));
        std::future::ready(())
    };
    run_desired(&agent, open, agent.last_good("switch"), on, stop).await;
}
