use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{FirewallCollector, Sampler};
use agents_update::{SharedStatus, UpdateCollector, running_version};

/// The listener of the firewall's metrics. It closes when dropped.
#[derive(Debug)]
pub struct StatisticsListener(#[expect(dead_code, reason = "owns the tasks")] JoinSet<()>);

impl StatisticsListener {
    /// Serves the last reading of the counters and the state of self-update at `listen`, in the VRF
    /// of this process.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn start(listen: SocketAddr, sampler: Sampler, update: SharedStatus) -> Result<Self> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot serve metrics at {listen}"))?;
        let (program, version) = ("metalmesh-firewall", running_version());
        let mut registry = base_telemetry::metrics::registry(program, version);
        registry.register_collector(Box::new(FirewallCollector(sampler)));
        registry.register_collector(Box::new(UpdateCollector {
            prefix: "metalmesh_firewall",
            status: update,
        }));
        let mut tasks = JoinSet::new();
        base_telemetry::metrics::spawn(&mut tasks, listener, registry, CancellationToken::new());
        Ok(Self(tasks))
    }
}
