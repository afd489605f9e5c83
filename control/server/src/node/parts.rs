//! The wiring of a node's parts, and the order in which they end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use control_api::services::Services;
use control_api::{FetchLimits, ImageDigests, NodeContext};
use control_backup::Backups;
use control_duties::{Duties, backup};
use control_front::{CallStats, Front, serve};
use control_gate::passwords::Hasher;
use control_gate::token::Issuer;
use control_gate::{ApiGate, Policies, Rates, ServiceContext, Uses};
use control_gateway::Gateway;
use control_login::Login;
use control_pki::{Pki, SealingKey};
use control_presence::Presence;
use control_store::{AuditTrail, Store};
use control_upstream::Upstream;
use control_vpn::VpnHealth;
use control_vpn::headscale;
use control_watch::{WatchLimits, Watches};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::config::Config;
use crate::host_inspector::HostInspector;
use crate::ironic::{self, IronicListener};
use crate::{metrics, traces};

use super::peering::Peering;

/// The parts of a node, created but not yet running.
pub(super) struct NodeParts<'a> {
    pub(super) store: Store,
    pub(super) dir: PathBuf,
    /// Listener of the metrics. `None` means that none are served.
    pub(super) metrics: Option<TcpListener>,
    /// Listener of Ironic's API. `None` means that it is not served.
    pub(super) ironic: Option<IronicListener>,
    pub(super) issuer: Issuer,
    pub(super) pki: Pki,
    pub(super) presence: Presence,
    pub(super) backups: Backups,
    pub(super) seal: SealingKey,
    pub(super) mesh: SocketAddr,
    pub(super) mesh_addresses: Vec<String>,
    pub(super) peer_address: String,
    pub(super) config: &'a Config,
}

/// The node-local observers: statistics of calls, and the sources of `metalmesh doctor`.
struct Observers {
    stats: CallStats,
    host_inspector: HostInspector,
    backup_places: backup::BackupPlaces,
}

impl NodeParts<'_> {
    /// Starts the node-local observers: metrics, host inspection, state of the backups.
    fn start_observers(
        &mut self,
        audit: &AuditTrail,
        watches: &Watches,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Observers {
        let (config, store, dir) = (self.config, &self.store, &self.dir);
        let backup_places = backup::BackupPlaces::default();
        let host_inspector = HostInspector::new(
            config,
            store,
            self.presence.clone(),
            backup_places.clone(),
            dir.clone(),
        );
        let sources = metrics::MetricSources {
            store: store.clone(),
            presence: self.presence.clone(),
            audit: audit.clone(),
            watches: watches.clone(),
            backup_places: backup_places.clone(),
            dir: dir.clone(),
        };
        let stats = CallStats::default();
        metrics::spawn(tasks, self.metrics.take(), sources, &stats, stop);
        Observers {
            stats,
            host_inspector,
            backup_places,
        }
    }

    /// Runs all parts until they end. The audit trail ends after the calls, so that it records the last
    /// ones, and the link to the peers after the trail, so that a follower can forward them.
    pub(super) async fn serve(
        mut self,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
        gateway: Gateway,
        mut peering: Peering,
        stop: CancellationToken,
    ) -> Result<()> {
        let mut tasks = JoinSet::new();
        let api = listener.local_addr().unwrap_or(self.config.api_listen);
        let (audit, writer) = AuditTrail::new(self.store.clone());
        let (uses, use_writer) = Uses::new(self.store.clone());
        let vpn = headscale::open(self.config.vpn.as_ref())?;
        let watches = Watches::new(WatchLimits::default(), stop.clone());
        let Observers {
            stats,
            host_inspector,
            backup_places,
        } = self.start_observers(&audit, &watches, &mut tasks, &stop);
        let context = Arc::new(ServiceContext {
            store: self.store.clone(),
            issuer: self.issuer,
            audit,
            provider: self.config.provider.clone(),
            policies: Policies::default(),
            rates: Rates::new(self.config.calls_per_minute),
            uses,
        });
        let hasher = Arc::new(Hasher::default());
        let node = Arc::new(NodeContext {
            pki: self.pki.clone(),
            mesh_addresses: self.mesh_addresses,
            peer_address: self.peer_address,
            watches,
            backups: self.backups.clone(),
            image_digests: ImageDigests::new(FetchLimits::default(), stop.clone()),
            hasher: Arc::clone(&hasher),
            presence: self.presence.clone(),
            vpn: vpn.clone(),
            vpn_health: VpnHealth::default(),
            surveyor: Arc::new(host_inspector),
        });
        let mut routes = Routes::builder();
        Services::new(Arc::clone(&context), node).add_to(&mut routes);
        let presence = self.presence.clone();
        Upstream::new(Arc::clone(&context), self.pki, presence, stop.clone()).add_to(&mut routes);
        let settings = self.config.login.settings(tls.is_some())?;
        let login = Login::new(Arc::clone(&context), hasher, self.seal, settings)?;
        let ironic = ironic::spawn(self.ironic, &context, tls.as_ref(), &mut tasks, &stop);
        let gate = ApiGate::new(context).with_stats(stats.clone());
        let tracing = traces::spawn(&mut tasks, &self.config.traces, &self.store, &stop)?;
        let front = Front::new(Arc::new(gate), routes.routes()).with_stats(stats);
        let front = front.with_tracing(tracing).with_pages(Arc::new(login));
        // The writer of the audit trail has its own token: with `stop` it would end while calls are
        // still draining, and their records would be lost.
        let calls_over = CancellationToken::new();
        let mut trail = JoinSet::new();
        trail.spawn(writer.run(calls_over.clone()));
        tasks.spawn(serve::serve(listener, tls, front, stop.clone()));
        tasks.spawn(use_writer.run(stop.clone()));
        tasks.spawn(gateway.run(stop.clone()));
        let duties = Duties {
            store: &self.store,
            presence: self.presence,
            vpn: vpn.as_ref(),
            backups: &self.backups,
            schedule: self.config.backup.as_ref(),
            backup_places: &backup_places,
            exports: &self.config.exports,
        };
        duties.spawn(&mut tasks, &stop)?;
        tracing::info!(api = %api, mesh = %self.mesh, "serving");
        println!("ready api={api} mesh={}{ironic}", self.mesh);
        let over = until_over(&self.store, &mut tasks, &mut peering.tasks, &stop).await;
        end_last(&calls_over, trail, peering).await;
        over
    }
}

/// Ends what the last calls need: the trail, then the link to the peers.
async fn end_last(calls_over: &CancellationToken, mut trail: JoinSet<()>, peering: Peering) {
    calls_over.cancel();
    while trail.join_next().await.is_some() {}
    peering.end().await;
}

/// Waits until all `tasks` have ended. A store that stops by itself, or a part that panics, one of
/// `peering` as well, stops the node and is an error.
async fn until_over(
    store: &Store,
    tasks: &mut JoinSet<()>,
    peering: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> Result<()> {
    let mut store_ended = false;
    let mut over = Ok(());
    loop {
        let ended = tokio::select! {
            reason = store.stopped(), if !store_ended => {
                store_ended = true;
                if !stop.is_cancelled() {
                    let reason = reason.unwrap_or_default();
                    tracing::error!(error = %reason, "the store stopped, so does the node");
                    over = Err(anyhow::anyhow!("the store stopped: {reason}"));
                    stop.cancel();
                }
                continue;
            }
            ended = tasks.join_next() => match ended {
                None => return over,
                Some(ended) => ended,
            },
            Some(ended) = peering.join_next() => ended,
        };
        if let Err(error) = ended {
            tracing::error!(error = %error, "a part of the node panicked");
            over = Err(anyhow::anyhow!("a part of the node panicked"));
            stop.cancel();
        }
    }
}
