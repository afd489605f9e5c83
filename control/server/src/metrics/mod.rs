//! What this node tells Prometheus, on an address of its own.
//!
//! Counts are kept where things happen; what follows from the state is looked up when somebody
//! scrapes, in pieces, so that no scrape holds the state for long. Machines have no labels of
//! their own: what is wrong with one of them says `metalmesh machine issues`.

mod census;
mod changes;
mod node;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use control_duties::backup::Kept;
use control_front::CallStats;
use control_presence::Presence;
use control_store::{AuditTrail, Store};
use control_watch::Watches;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// `[metrics]` of the configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Section {
    pub(crate) listen: Option<SocketAddr>,
}

/// What is looked at when somebody scrapes.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub(crate) store: Store,
    pub(crate) presence: Presence,
    pub(crate) audit: AuditTrail,
    pub(crate) watches: Watches,
    /// Places of backups.
    pub(crate) kept: Kept,
    /// The data directory.
    pub(crate) dir: PathBuf,
}

/// Binds the address, where one is configured.
///
/// # Errors
/// When it cannot be listened on.
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
    sources: Sources,
    calls: &CallStats,
    stop: &CancellationToken,
) {
    let Some(listener) = listener else {
        return;
    };
    let mut registry = base_telemetry::metrics::registry("metalmeshd", env!("CARGO_PKG_VERSION"));
    calls.register(&mut registry);
    let changes = changes::Counts::default();
    changes.register(&mut registry);
    tasks.spawn(changes.follow(sources.store.watch(), stop.clone()));
    registry.register_collector(Box::new(census::Census(sources.store.clone())));
    registry.register_collector(Box::new(node::Node(sources)));
    base_telemetry::metrics::spawn(tasks, listener, registry, stop.clone());
}
