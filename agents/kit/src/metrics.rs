//! The agent's metrics for Prometheus.

use std::fmt;
use std::net::SocketAddr;

use base_telemetry::metrics::{Collector, DescriptorEncoder, Sheet, Unit};
use proto_link::SessionState;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::error::KitError;

/// The listener of an agent's metrics. It closes when dropped.
#[derive(Debug)]
pub struct MetricsListener(#[expect(dead_code, reason = "owns the tasks")] JoinSet<()>);

/// Serves an agent's metrics at `listen`, with those of `more`.
pub(crate) async fn serve(
    listen: SocketAddr,
    agent: &Agent,
    program: &'static str,
    more: Option<Box<dyn Collector>>,
) -> Result<MetricsListener, KitError> {
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|source| KitError::Metrics { listen, source })?;
    let mut registry = base_telemetry::metrics::registry(program, env!("CARGO_PKG_VERSION"));
    registry.register(
        "metalmesh_agent_steps",
        "What the agent did, by step and by how it ended",
        agent.steps().family(),
    );
    registry.register_collector(Box::new(SessionGauges(agent.clone())));
    if let Some(more) = more {
        registry.register_collector(more);
    }
    let mut tasks = JoinSet::new();
    base_telemetry::metrics::spawn(&mut tasks, listener, registry, CancellationToken::new());
    Ok(MetricsListener(tasks))
}

/// Reads the state of session and certificate at each scrape.
#[derive(Debug)]
struct SessionGauges(Agent);

impl Collector for SessionGauges {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        let is_up = matches!(*self.0.session().borrow(), SessionState::Up);
        let help = "Whether the agent has a session with control";
        let up = if is_up { 1.0 } else { 0.0 };
        sheet.gauge("metalmesh_agent_session_up", help, None, up)?;
        let identity = self.0.credential().identity();
        let ends = identity
            .ok()
            .map(|identity| (Vec::new(), seconds(identity.not_after_ms)));
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
