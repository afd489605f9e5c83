//! Spans of the agent's work for an OpenTelemetry collector.

use base_telemetry::traces::{Collector, Spans};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::error::KitError;

/// Sends an agent's spans for as long as it lives.
#[derive(Debug, Default)]
pub struct Traced {
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Traced {
    /// Stops after sending the remaining spans; takes seconds at most.
    pub async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Sends an agent's spans to `url`.
pub(crate) fn send(
    url: &str,
    agent: &Agent,
    program: &'static str,
) -> Result<(Spans, Traced), KitError> {
    let mut traced = Traced::default();
    let collector = Collector {
        url: url.to_owned(),
        authorization: None,
        tls: None,
    };
    let identity = agent.identity();
    let resource = vec![
        ("service.instance.id", identity.id.clone()),
        ("metalmesh.partition", identity.partition.clone()),
    ];
    let stop = traced.stop.clone();
    let spans = Spans::spawn(&mut traced.tasks, collector, program, resource, stop)?;
    Ok((spans, traced))
}
