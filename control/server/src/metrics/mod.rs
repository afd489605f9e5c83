//! Metrics of this node for Prometheus, on an address of their own.
//!
//! Events are counted where they happen. Values that follow from the state are computed at each
//! scrape, in pieces, so that no scrape locks the state for long. Metrics have no label per machine:
//! `metalmesh machine issues` reports the problems of single machines.

mod census;
mod changes;
mod firewalls;
mod node;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use control_duties::backup::BackupPlaces;
use control_front::CallStats;
use control_presence::Presence;
use control_store::{AuditTrail, Store};
use control_watch::Watches;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The section `[metrics]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MetricsSection {
    /// TCP address of the metrics. `None` means that none are served.
    pub(crate) listen: Option<SocketAddr>,
}

/// The sources that a scrape reads.
#[derive(Debug, Clone)]
pub(crate) struct MetricSources {
    pub(crate) store: Store,
    pub(crate) presence: Presence,
    pub(crate) audit: AuditTrail,
    pub(crate) watches: Watches,
    /// State of the backup places.
    pub(crate) backup_places: BackupPlaces,
    /// The data directory.
    pub(crate) dir: PathBuf,
}

/// Binds the configured address. `None` means that none is configured.
///
/// # Errors
/// The address cannot be bound; the message names the field.
pub(crate) async fn bind(listen: Option<SocketAddr>) -> Result<Option<TcpListener>> {
    let Some(listen) = listen else {
        return Ok(None);
    };
    let bound = TcpListener::bind(listen).await;
    let bound = bound.with_context(|| format!("metrics.listen: cannot listen on {listen}"))?;
    Ok(Some(bound))
}

/// Serves metrics until `stop`.
pub(crate) fn spawn(
    tasks: &mut JoinSet<()>,
    listener: Option<TcpListener>,
    sources: MetricSources,
    calls: &CallStats,
    stop: &CancellationToken,
) {
    let Some(listener) = listener else {
        return;
    };
    let mut registry = base_telemetry::metrics::registry("metalmeshd", env!("CARGO_PKG_VERSION"));
    calls.register(&mut registry);
    let changes = changes::ChangeCounts::default();
    changes.register(&mut registry);
    tasks.spawn(changes.follow(sources.store.watch(), stop.clone()));
    registry.register_collector(Box::new(census::Census(sources.store.clone())));
    registry.register_collector(Box::new(node::NodeMetrics(sources)));
    base_telemetry::metrics::spawn(tasks, listener, registry, stop.clone());
}
