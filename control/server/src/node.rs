//! One node: the store opened, the parts wired, everything stopped in order.

use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use control_api::backup::Backups;
use control_api::front::Front;
use control_api::gate::ApiGate;
use control_api::login::{Hasher, Login};
use control_api::services::Services;
use control_api::token::Issuer;
use control_api::vpn::VpnHealth;
use control_api::{
    CallStats, Core, Ears, Policies, Published, Rates, Uses, WatchLimits, Watches, serve, token,
};
use control_gateway::{FleetView, Gateway, GatewayConfig};
use control_peers::PeerLink;
use control_pki::{Pki, SealingKey, peer_credential_at_rest};
use control_reconcile::{Heard, Listener};
use control_store::{AuditTrail, Begin, Store, StoreConfig, claimed};
use proto_identity::SpiffeId;
use proto_types::{MachineId, PartitionId, Timestamp};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::bootstrap::Handover;
use crate::config::{Config, Peers};
use crate::{Run, export, join, metrics, peers, premises, schedule, tls, traces, vpn, vpn_duty};

/// Name of the sealing key's file in the data directory.
pub(crate) const SEALING_KEY: &str = "seal.key";

/// The cluster's data key, sealed by the sealing key.
pub(crate) const DATA_KEY: &str = "data.key";
/// The cluster's name when nobody says.
const CLUSTER: &str = "metalmesh";

/// What every command needs of a data directory.
struct Opened {
    store: Store,
    /// Where its data is.
    dir: PathBuf,
    issuer: Issuer,
    pki: Pki,
    backups: Backups,
    seal: SealingKey,
    is_fresh: bool,
    /// The way to the other nodes, where there is one.
    link: Option<PeerLink>,
    /// What belongs to the link; ends with `stop`.
    tasks: JoinSet<()>,
    /// Removed when dropped.
    _temporary: Option<TempDir>,
}

/// Opens the node and waits until it is part of a cluster that works. `None` when stopped first.
async fn open(config: &Config, stop: &CancellationToken) -> Result<Option<Opened>> {
    let temporary = match &config.data_dir {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("metalmeshd-").tempdir()?),
    };
    let dir: PathBuf = match (&config.data_dir, &temporary) {
        (Some(dir), _) => dir.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => bail!("data_dir: is missing"),
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .with_context(|| format!("data_dir: cannot make {}", dir.display()))?;
    let link = config.peers.as_ref().map(bind_peers).transpose()?;
    let Some((store, seal)) = open_store(config, &dir, link.as_ref(), stop).await? else {
        return Ok(None);
    };
    let mut tasks = JoinSet::new();
    if let Some(link) = &link {
        if let Some(credential) = peer_credential_at_rest(&store, &seal, &config.trust_domain)? {
            link.set_credential(credential)?;
        }
        tasks.spawn(link.clone().run(store.clone(), stop.clone()));
        let (removed, stop) = (link.removed(), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = removed.cancelled() => stop.cancel(),
            }
        });
    }
    let works = peers::wait_for_majority(&store, stop).await;
    if !matches!(works, Ok(true)) {
        store.shutdown().await;
        return works.map(|_| None);
    }
    let pki = Pki::open(store.clone(), &seal, &config.trust_domain)
        .await
        .context("cannot open the certificate authority")?;
    if let Some(link) = &link {
        let (link, pki) = (link.clone(), pki.clone());
        peers::spawn_renewal(&mut tasks, link, pki, store.node_id(), stop.clone());
    }
    let issuer = token::issuer(&store, &seal, &config.issuer).await?;
    let backups = Backups::new(store.clone(), seal.secret());
    let is_fresh = control_api::is_fresh(&store, &config.provider).await?;
    Ok(Some(Opened {
        store,
        dir,
        issuer,
        pki,
        backups,
        seal,
        is_fresh,
        link,
        tasks,
        _temporary: temporary,
    }))
}

fn bind_peers(peers: &Peers) -> Result<PeerLink> {
    let listen = peers.listen;
    PeerLink::bind(listen).with_context(|| format!("peers.listen: cannot listen on {listen}"))
}

/// Opens the store, after joining where that is wanted, and the key that seals what is in it.
async fn open_store(
    config: &Config,
    dir: &Path,
    link: Option<&PeerLink>,
    stop: &CancellationToken,
) -> Result<Option<(Store, SealingKey)>> {
    let node_key = sealing_key(config, dir)?;
    let data_key = dir.join(DATA_KEY);
    let claim = claimed(dir).context("cannot open the state")?;
    let mut begin = Begin::Form;
    let mut node = config.node_id.or_else(|| claim.as_ref().map(|c| c.node));
    let mut cluster = config.cluster.clone();
    let mut seal = None;
    if let (Some(peers), Some(link), None) = (&config.peers, link, &claim)
        && peers.join
    {
        let Some(joined) = join::wait(config, peers, dir, stop).await? else {
            return Ok(None);
        };
        // What a join before this one left behind.
        if data_key.exists() {
            std::fs::remove_file(&data_key)?;
        }
        node_key.keep_data_key(&data_key, &joined.data_key)?;
        link.set_credential(joined.credential)?;
        begin = Begin::Join(joined.cluster_id);
        node = Some(joined.node);
        cluster = Some(joined.cluster);
        seal = Some(joined.data_key);
    }
    let seal = match seal {
        Some(seal) => seal,
        None => node_key.data_key(&data_key, claim.is_some())?,
    };
    let cluster = cluster.or_else(|| claim.map(|c| c.cluster));
    let cluster = cluster.unwrap_or_else(|| CLUSTER.to_owned());
    let mut store = StoreConfig::new(dir, node.unwrap_or(1), cluster);
    store.begin = begin;
    store.snapshot_every_entries = config.snapshot_every_entries;
    store.keep_entries = config.keep_entries;
    if let (Some(peers), Some(link)) = (&config.peers, link) {
        store.peer_address.clone_from(&peers.address);
        store.transport = Arc::new(link.clone());
        store.snapshot_bytes_per_second = peers.snapshot_bytes_per_second;
    }
    let store = Store::open(store).await.context("cannot open the state")?;
    Ok(Some((store, seal)))
}

fn sealing_key(config: &Config, dir: &Path) -> Result<SealingKey> {
    let path = config
        .sealing_key
        .clone()
        .unwrap_or_else(|| dir.join(SEALING_KEY));
    SealingKey::load_or_create(&path)
        .with_context(|| format!("mesh.sealing_key: cannot use {}", path.display()))
}

/// `metalmeshd init`: the data directory and its first token.
pub(crate) async fn init(config: Config, run: &Run, stop: CancellationToken) -> Result<()> {
    ensure!(
        config.data_dir.is_some(),
        "init makes a lasting node; name --data-dir"
    );
    ensure!(
        config.peers.as_ref().is_none_or(|peers| !peers.join),
        "peers.join: is true, so this node joins a cluster; init is for the node that forms one"
    );
    let handover = Handover::new(run, config.api_listen, config.tls.is_some())?;
    ensure!(
        handover.has_place(),
        "name where the admin token goes: --token-file FILE"
    );
    let Some(opened) = open(&config, &stop).await? else {
        bail!("stopped before the node was ready");
    };
    let outcome = if opened.is_fresh {
        set_up(&opened, &config, &handover, "made by metalmeshd init").await
    } else {
        Err(anyhow::anyhow!(
            "the data directory is in use already; for a new admin token: metalmeshd token"
        ))
    };
    close(opened, &stop).await;
    outcome
}

/// `metalmeshd token`: a new admin token for who lost the last.
pub(crate) async fn token(config: Config, run: &Run, stop: CancellationToken) -> Result<()> {
    ensure!(config.data_dir.is_some(), "name the node's --data-dir");
    let handover = Handover::new(run, config.api_listen, config.tls.is_some())?;
    ensure!(
        handover.has_place(),
        "name where the admin token goes: --token-file FILE"
    );
    let Some(opened) = open(&config, &stop).await? else {
        bail!("stopped before the node was ready");
    };
    let outcome = handover
        .give(&opened.store, &opened.issuer, "made by metalmeshd token")
        .await;
    close(opened, &stop).await;
    outcome
}

/// The link ends first, so that the peers learn of it.
async fn close(mut opened: Opened, stop: &CancellationToken) {
    stop.cancel();
    while opened.tasks.join_next().await.is_some() {}
    opened.store.shutdown().await;
}

/// Hands the first admin token over and only then calls the cluster set up: a crash in between
/// makes another token, never none.
async fn set_up(opened: &Opened, config: &Config, handover: &Handover, why: &str) -> Result<()> {
    if handover.has_place() {
        handover.give(&opened.store, &opened.issuer, why).await?;
    } else {
        tracing::warn!("no admin token was made; get one with: metalmeshd token");
    }
    control_api::tenants(&opened.store, &config.provider).await?;
    Ok(())
}

/// Serves until stopped.
pub(crate) async fn run(config: Config, run: &Run, stop: CancellationToken) -> Result<()> {
    let listener = TcpListener::bind(config.api_listen)
        .await
        .with_context(|| format!("api.listen: cannot listen on {}", config.api_listen))?;
    let api = listener.local_addr()?;
    let metrics = metrics::bind(config.metrics_listen).await?;
    let tls = config.tls.as_ref().map(tls::server_config).transpose()?;
    let Some(opened) = open(&config, &stop).await? else {
        tracing::info!("stopped before the node was ready");
        return Ok(());
    };
    let handover = Handover::new(run, api, tls.is_some())?;
    if opened.is_fresh {
        set_up(&opened, &config, &handover, "made at the first start").await?;
    } else if config.dev {
        handover.follow()?;
    }
    let Opened {
        store,
        dir,
        issuer,
        pki,
        link,
        tasks,
        backups,
        seal,
        _temporary,
        ..
    } = opened;
    let gateway = gateway(&config, &store, &pki)?;
    let mesh = gateway.local_addr()?;
    let mesh_addresses = match config.mesh_addresses.as_slice() {
        [] => vec![mesh.to_string()],
        addresses => addresses.to_vec(),
    };
    let peer_address = config.peers.as_ref().map(|p| p.address.clone());
    let peer_address = peer_address.filter(|_| link.is_some()).unwrap_or_default();
    peers::announce(&store, &peer_address, mesh_addresses.clone()).await?;
    let parts = Parts {
        store: store.clone(),
        dir,
        issuer,
        pki,
        backups,
        seal,
        metrics,
        mesh,
        mesh_addresses,
        peer_address,
        config: &config,
    };
    let served = parts.serve(listener, tls, gateway, tasks, stop).await;
    store.shutdown().await;
    tracing::info!("stopped");
    served
}

fn gateway(config: &Config, store: &Store, pki: &Pki) -> Result<Gateway> {
    let named = || format!("mesh.listen: cannot listen on {}", config.mesh_listen);
    let bind = free_port(config.mesh_listen).with_context(named)?;
    let control = if config.mesh_addresses.is_empty() {
        vec![bind.to_string()]
    } else {
        config.mesh_addresses.clone()
    };
    Gateway::bind(GatewayConfig {
        bind,
        store: store.clone(),
        pki: pki.clone(),
        control,
    })
    .with_context(named)
}

/// Port 0 means any: it has to be known before the first ticket names it.
fn free_port(address: SocketAddr) -> std::io::Result<SocketAddr> {
    if address.port() != 0 {
        return Ok(address);
    }
    std::net::UdpSocket::bind(address)?.local_addr()
}

struct Parts<'a> {
    store: Store,
    dir: PathBuf,
    /// Where metrics are asked for.
    metrics: Option<TcpListener>,
    issuer: Issuer,
    pki: Pki,
    backups: Backups,
    seal: SealingKey,
    mesh: SocketAddr,
    mesh_addresses: Vec<String>,
    peer_address: String,
    config: &'a Config,
}

/// See [`Parts::tell`].
struct Told {
    stats: CallStats,
    here: premises::Here,
    kept: schedule::Kept,
}

impl Parts<'_> {
    /// What looks after this node without being a part of what it does.
    fn tell(
        &mut self,
        gateway: &Gateway,
        (audit, watches): (&AuditTrail, &Watches),
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Told {
        let (config, store, dir) = (self.config, &self.store, &self.dir);
        let kept = schedule::Kept::default();
        let here = premises::Here::new(config, store, gateway.fleet(), kept.clone(), dir.clone());
        let sources = metrics::Sources {
            store: store.clone(),
            fleet: gateway.fleet(),
            audit: audit.clone(),
            watches: watches.clone(),
            kept: kept.clone(),
            dir: dir.clone(),
        };
        let stats = CallStats::default();
        metrics::spawn(tasks, self.metrics.take(), sources, &stats, stop);
        Told { stats, here, kept }
    }

    /// Runs all parts; the audit trail ends last, so that it has the last calls.
    async fn serve(
        mut self,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
        gateway: Gateway,
        mut tasks: JoinSet<()>,
        stop: CancellationToken,
    ) -> Result<()> {
        let api = listener.local_addr().unwrap_or(self.config.api_listen);
        let (audit, writer) = AuditTrail::new(self.store.clone());
        let (uses, use_writer) = Uses::new(self.store.clone());
        let vpn = vpn::open(self.config.vpn.as_ref())?;
        vpn_duty::spawn(&mut tasks, &self.store, vpn.as_ref(), &stop);
        let watches = Watches::new(WatchLimits::default(), stop.clone());
        let Told { stats, here, kept } = self.tell(&gateway, (&audit, &watches), &mut tasks, &stop);
        let core = Arc::new(Core {
            store: self.store.clone(),
            issuer: self.issuer,
            audit,
            provider: self.config.provider.clone(),
            pki: self.pki,
            mesh_addresses: self.mesh_addresses,
            peer_address: self.peer_address,
            backups: self.backups.clone(),
            rates: Rates::new(self.config.calls_per_minute),
            uses,
            hasher: Hasher::default(),
            watches,
            policies: Policies::default(),
            published: Published::new(Arc::new(Fleet(gateway.fleet()))),
            vpn,
            vpn_health: VpnHealth::default(),
            surveyor: Arc::new(here),
        });
        let routes = Services::new(Arc::clone(&core)).routes();
        let settings = self.config.login.settings(tls.is_some())?;
        let login = Login::new(Arc::clone(&core), self.seal, settings)?;
        let gate = ApiGate::new(core).with_stats(stats.clone());
        let tracing = traces::spawn(&mut tasks, &self.config.traces, &self.store, &stop)?;
        let front = Front::new(Arc::new(gate), routes).with_stats(stats);
        let front = front.with_tracing(tracing);
        let front = front.with_pages(Arc::new(login));
        let calls_over = CancellationToken::new();
        let mut trail = JoinSet::new();
        trail.spawn(writer.run(calls_over.clone()));
        let fleet = Arc::new(Fleet(gateway.fleet()));
        tasks.spawn(serve::serve(listener, tls, front, stop.clone()));
        tasks.spawn(use_writer.run(stop.clone()));
        tasks.spawn(gateway.run(stop.clone()));
        control_reconcile::spawn(&mut tasks, self.store.clone(), fleet, stop.clone());
        let schedule = self.config.backup.as_ref();
        schedule::spawn(
            &mut tasks,
            schedule,
            &self.store,
            (&self.backups, &kept),
            &stop,
        )?;
        export::spawn(&mut tasks, &self.config.exports, &self.store, &stop)?;
        tracing::info!(api = %api, mesh = %self.mesh, "serving");
        println!("ready api={api} mesh={}", self.mesh);
        let over = until_over(&self.store, &mut tasks, &stop).await;
        calls_over.cancel();
        while trail.join_next().await.is_some() {}
        over
    }
}

/// Until all tasks ended. A store that stops by itself or a part that panics ends the node, and is
/// an error.
async fn until_over(
    store: &Store,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> Result<()> {
    let mut store_ended = false;
    let mut over = Ok(());
    loop {
        tokio::select! {
            reason = store.stopped(), if !store_ended => {
                store_ended = true;
                if !stop.is_cancelled() {
                    let reason = reason.unwrap_or_default();
                    tracing::error!(error = %reason, "the store stopped, so does the node");
                    over = Err(anyhow::anyhow!("the store stopped: {reason}"));
                    stop.cancel();
                }
            }
            ended = tasks.join_next() => match ended {
                None => return over,
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    tracing::error!(error = %error, "a part of the node panicked");
                    over = Err(anyhow::anyhow!("a part of the node panicked"));
                    stop.cancel();
                }
            }
        }
    }
}

/// What the gateway heard, for the duties of the leader.
#[derive(Debug)]
struct Fleet(FleetView);

impl Ears for Fleet {
    fn machine(&self, id: MachineId, now: Timestamp) {
        self.0.heard_machine(id, now);
    }

    fn partition(&self, id: &PartitionId, now: Timestamp) {
        self.0.heard_partition(id, now);
    }

    fn is_here(&self, id: &SpiffeId) -> Option<bool> {
        self.0.is_here(id)
    }
}

impl Listener for Fleet {
    fn heard(&self) -> Heard {
        let fleet = self.0.fleet();
        Heard {
            listening_since: fleet.listening_since,
            machines: fleet.heard,
            unobserved: fleet.unobserved,
        }
    }
}
