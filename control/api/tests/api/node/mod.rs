//! A node to test with.

mod people;
mod rack;

use std::net::SocketAddr;
use std::sync::Arc;

use control_api::services::Services;
use control_api::{FetchLimits, ImageDigests, NodeContext};
use control_authz::{Permit, SystemActor};
use control_backup::Backups;
use control_front::serve::ConnectionLimits;
use control_front::{Front, serve};
use control_gate::bootstrap::{admin_token, is_fresh, tenants};
use control_gate::passwords::Hasher;
use control_gate::{ApiGate, CALLS_PER_MINUTE, Policies, Rates, ServiceContext, Uses, token};
use control_login::{Login, LoginSettings, Redirects};
use control_pki::{Pki, SealingKey};
use control_presence::Presence;
use control_state::{Command, Op, Reply, Tick};
use control_store::{AuditTrail, Store, StoreConfig, WATCH_HISTORY_CHANGES};
use control_upstream::Upstream;
use control_watch::{WatchLimits, Watches};
use http::HeaderValue;
use proto_public::api::v2 as api;
use tempfile::TempDir;
use tests_support::{CLUSTER, announcement, propose, restore_into};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic::service::{Interceptor, Routes};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

pub(crate) use rack::{debian, leaf};

/// Provider's tenant.
pub(crate) const PROVIDER: &str = "metal-stack";
/// Life of tokens in tests.
const LIFE_MS: u64 = 3_600_000;
/// Adds a bearer token.
#[derive(Clone)]
pub(crate) struct Bearer(Option<String>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
            let value = tonic::metadata::MetadataValue::try_from(value.to_str().unwrap()).unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        Ok(request)
    }
}

pub(crate) type Wire = InterceptedService<Channel, Bearer>;

/// Tells what the node knows, as `metalmeshd` does at its start.
async fn announce(store: &Store) {
    let permit = Permit::system(SystemActor::Bootstrap);
    let command = Command::new(store.now(), "test", announcement(1));
    store.propose(&permit, &command).await.unwrap();
}

/// A machine as [`Node::data_centre`] has them, in one network.
pub(crate) fn wanted_machine(
    project: &str,
    network: &str,
    name: &str,
) -> api::MachineServiceCreateRequest {
    api::MachineServiceCreateRequest {
        project: project.to_owned(),
        name: name.to_owned(),
        partition: Some("lab".into()),
        size: Some("small".into()),
        image: "debian-12.0".into(),
        filesystem_layout: Some("default".into()),
        networks: vec![api::MachineAllocationNetwork {
            network: network.to_owned(),
            ips: Vec::new(),
        }],
        allocation_type: api::MachineAllocationType::Machine.into(),
        ..Default::default()
    }
}

/// Bounds of a node.
struct NodeBounds {
    watches: WatchLimits,
    watch_history: usize,
    calls_per_minute: u32,
    connections: ConnectionLimits,
    fetches: FetchLimits,
}

impl Default for NodeBounds {
    fn default() -> Self {
        Self {
            watches: WatchLimits::default(),
            watch_history: WATCH_HISTORY_CHANGES,
            calls_per_minute: CALLS_PER_MINUTE,
            connections: ConnectionLimits::default(),
            fetches: FetchLimits::default(),
        }
    }
}

/// A running node.
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    pub(crate) admin: String,
    pub(crate) store: Store,
    pub(crate) presence: Presence,
    seal: SealingKey,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    dir: TempDir,
}

impl Node {
    pub(crate) async fn start() -> Self {
        Self::start_with(WatchLimits::default(), WATCH_HISTORY_CHANGES).await
    }

    /// A node with other bounds of its watches.
    pub(crate) async fn start_with(limits: WatchLimits, watch_history: usize) -> Self {
        let bounds = NodeBounds {
            watches: limits,
            watch_history,
            ..NodeBounds::default()
        };
        Self::start_whole(bounds).await
    }

    /// A node with other bounds on connections.
    pub(crate) async fn start_bounded_connections(connections: ConnectionLimits) -> Self {
        let bounds = NodeBounds {
            connections,
            ..NodeBounds::default()
        };
        Self::start_whole(bounds).await
    }

    /// A node with other bounds of what it fetches.
    pub(crate) async fn start_fetching(fetches: FetchLimits) -> Self {
        let bounds = NodeBounds {
            fetches,
            ..NodeBounds::default()
        };
        Self::start_whole(bounds).await
    }

    /// A node with another bound of calls.
    pub(crate) async fn start_bounded(calls_per_minute: u32) -> Self {
        let bounds = NodeBounds {
            calls_per_minute,
            ..NodeBounds::default()
        };
        Self::start_whole(bounds).await
    }

    async fn start_whole(bounds: NodeBounds) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig {
            watch_history: bounds.watch_history,
            ..StoreConfig::new(dir.path(), 1, CLUSTER)
        };
        Self::serve(dir, Store::open(config).await.unwrap(), bounds).await
    }

    /// Another node, with the state that this one would leave in a backup.
    pub(crate) async fn restored(self) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(
            self.dir.path().join("seal.key"),
            dir.path().join("seal.key"),
        )
        .unwrap();
        let config = restore_into(&self.store, &dir.path().join("data")).await;
        self.stop().await;
        let store = Store::open(config).await.unwrap();
        Self::serve(dir, store, NodeBounds::default()).await
    }

    async fn serve(dir: TempDir, store: Store, bounds: NodeBounds) -> Self {
        let seal = SealingKey::load(&dir.path().join("seal.key"), true).unwrap();
        let pki = Pki::open(store.clone(), &seal, "test.example")
            .await
            .unwrap();
        let issuer = token::issuer(&store, &seal, "https://test.example")
            .await
            .unwrap();
        announce(&store).await;
        if is_fresh(&store, PROVIDER).await.unwrap() {
            tenants(&store, PROVIDER).await.unwrap();
        }
        assert!(!is_fresh(&store, PROVIDER).await.unwrap());
        let admin = admin_token(&store, &issuer, "test", LIFE_MS).await.unwrap();
        let (audit, writer) = AuditTrail::new(store.clone());
        let (uses, use_writer) = Uses::new(store.clone());
        let stop = CancellationToken::new();
        let context = Arc::new(ServiceContext {
            store: store.clone(),
            issuer,
            audit,
            provider: PROVIDER.to_owned(),
            policies: Policies::default(),
            rates: Rates::new(bounds.calls_per_minute),
            uses,
        });
        let presence = Presence::new(store.clone());
        let hasher = Arc::new(Hasher::default());
        let parts = Arc::new(NodeContext {
            pki: pki.clone(),
            mesh_addresses: vec!["control.example:4443".to_owned()],
            peer_address: String::new(),
            watches: Watches::new(bounds.watches, stop.clone()),
            backups: Backups::new(store.clone(), seal.secret()),
            image_digests: ImageDigests::new(bounds.fetches, stop.clone()),
            hasher: Arc::clone(&hasher),
            presence: presence.clone(),
            vpn: None,
            vpn_health: control_vpn::VpnHealth::default(),
            surveyor: Arc::new(control_api::doctor::Nowhere),
        });
        let mut routes = Routes::builder();
        Services::new(Arc::clone(&context), parts).add_to(&mut routes);
        let upstream = Upstream::new(Arc::clone(&context), pki, presence.clone(), stop.clone());
        upstream.add_to(&mut routes);
        let settings = LoginSettings {
            redirects: Redirects::default(),
            token_life_ms: LIFE_MS,
            is_secure: false,
            provider: None,
        };
        let login = Login::new(Arc::clone(&context), hasher, seal.clone(), settings).unwrap();
        let front = Front::new(Arc::new(ApiGate::new(context)), routes.routes())
            .with_pages(Arc::new(login));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let served = serve::serve_within(bounds.connections, listener, None, front, stop.clone());
        tasks.spawn(served);
        tasks.spawn(writer.run(stop.clone()));
        tasks.spawn(use_writer.run(stop.clone()));
        Self {
            address,
            admin,
            store,
            presence,
            seal,
            stop,
            tasks,
            dir,
        }
    }

    /// Stops in order; proves that everything ends.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        self.store.shutdown().await;
    }

    /// A connection with a token.
    pub(crate) fn wire(&self, token: Option<&str>) -> Wire {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        let bearer = Bearer(token.map(str::to_owned));
        InterceptedService::new(endpoint.connect_lazy(), bearer)
    }

    pub(crate) fn as_admin(&self) -> Wire {
        self.wire(Some(&self.admin))
    }

    /// Has a command of hardware or agents applied.
    pub(crate) async fn hardware(&self, op: impl Into<Op>) -> Reply {
        propose(&self.store, op).await.unwrap()
    }

    /// Lets so much time pass without a sign of life of any machine, milliseconds.
    pub(crate) async fn silence(&self, ms: u64) {
        let permit = Permit::system(SystemActor::Reconcile);
        let later = self.store.now().plus_ms(ms);
        let command = Command::new(later, "test", Tick::default());
        self.store.propose(&permit, &command).await.unwrap();
    }
}
