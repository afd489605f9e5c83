//! What an agent tells Prometheus, when it is asked to.

use std::fmt;
use std::net::SocketAddr;

use base_telemetry::metrics::{Collector, DescriptorEncoder, Sheet, Unit};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use proto_link::SessionState;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::error::KitError;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Step {
    step: &'static str,
    outcome: &'static str,
}

/// Counts what an agent does, by what it was and how it ended. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Steps(Family<Step, Counter>);

impl Steps {
    /// One more. Both names are of fixed sets.
    pub fn count(&self, step: &'static str, outcome: &'static str) {
        self.0.get_or_create(&Step { step, outcome }).inc();
    }

    /// One more that was `done` or `failed`.
    pub fn ended<T, E>(&self, step: &'static str, result: &Result<T, E>) {
        self.count(step, if result.is_ok() { "done" } else { "failed" });
    }
}

/// The listener of an agent's metrics; ends when dropped.
#[derive(Debug)]
pub struct Served(#[expect(dead_code, reason = "owns the tasks")] JoinSet<()>);

/// Serves an agent's metrics at `listen`.
pub(crate) async fn serve(
    listen: SocketAddr,
    agent: &Agent,
    program: &'static str,
) -> Result<Served, KitError> {
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|source| KitError::Metrics { listen, source })?;
    let mut registry = base_telemetry::metrics::registry(program, env!("CARGO_PKG_VERSION"));
    registry.register(
        "metalmesh_agent_steps",
        "What the agent did, by step and by how it ended",
        agent.steps().0,
    );
    registry.register_collector(Box::new(Session(agent.clone())));
    let mut tasks = JoinSet::new();
    base_telemetry::metrics::spawn(&mut tasks, listener, registry, CancellationToken::new());
    Ok(Served(tasks))
}

/// Looks when somebody scrapes.
#[derive(Debug)]
struct Session(Agent);

impl Collector for Session {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        let is_up = matches!(*self.0.session().borrow(), SessionState::Up);
        let help = "Whether the agent has a session with control";
        let up = if is_up { 1.0 } else { 0.0 };
        sheet.gauge("metalmesh_agent_session_up", help, None, up)?;
        let identity = self.0.credential().identity();
        let ends = identity
            .ok()
            .map(|it| (Vec::new(), seconds(it.not_after_ms)));
        sheet.gauges(
            "metalmesh_agent_certificate_end_timestamp",
            "When the agent's certificate ends, seconds since 1970",
            Some(Unit::Seconds),
            ends,
        )
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus knows floating-point numbers only"
)]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
