//! A node to test with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use control_api::backup::Backups;
use control_api::front::Front;
use control_api::gate::ApiGate;
use control_api::login::{Hasher, Login, LoginSettings, Redirects};
use control_api::serve::ConnectionLimits;
use control_api::services::Services;
use control_api::{
    CALLS_PER_MINUTE, Core, FetchLimits, ImageDigests, Policies, Published, Rates, Uses,
    WatchLimits, Watches, admin_token, is_fresh, serve, tenants, token,
};
use control_authz::{Permit, SystemActor};
use control_pki::{Pki, SealingKey};
use control_state::{
    AnnounceNode, BlockDevice, BmcAction, BmcOrderDone, Command, Cpu, CreateToken, DiskWipe,
    EventKind, FEATURE_LEVEL, Hardware, MachineEvent, MachineSeen, Neighbour, Nic, Op,
    PortObserved, RegisterMachine, RegisterSwitch, Reply, ReportSwitch, Tick, TokenType, WipeDone,
};
use control_store::{AuditTrail, Store, StoreConfig, WATCH_HISTORY_CHANGES};
use http::HeaderValue;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_types::{MacAddr, MachineId, PartitionId, SwitchId, TokenId};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use uuid::Uuid;

/// Provider's tenant.
pub(crate) const PROVIDER: &str = "metal-stack";
/// Life of tokens in tests.
const LIFE_MS: u64 = 3_600_000;
/// Longest wait for a condition.
const PATIENCE: Duration = Duration::from_secs(20);

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
    let announce = AnnounceNode {
        id: 1,
        peer_address: String::new(),
        mesh_addresses: Vec::new(),
        level: FEATURE_LEVEL,
        version: String::new(),
    };
    let permit = Permit::system(SystemActor::Bootstrap);
    let command = Command::new(store.now(), "test", announce);
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
    seal: SealingKey,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _dir: TempDir,
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
            ..StoreConfig::new(dir.path(), 1, "test")
        };
        let store = Store::open(config).await.unwrap();
        let seal = SealingKey::load_or_create(&dir.path().join("seal.key")).unwrap();
        let pki = Pki::open(store.clone(), &seal, "test.example")
            .await
            .unwrap();
        let issuer = token::issuer(&store, &seal, "https://test.example")
            .await
            .unwrap();
        announce(&store).await;
        assert!(is_fresh(&store, PROVIDER).await.unwrap());
        tenants(&store, PROVIDER).await.unwrap();
        assert!(!is_fresh(&store, PROVIDER).await.unwrap());
        let admin = admin_token(&store, &issuer, "test", LIFE_MS).await.unwrap();
        let (audit, writer) = AuditTrail::new(store.clone());
        let (uses, use_writer) = Uses::new(store.clone());
        let stop = CancellationToken::new();
        let core = Arc::new(Core {
            store: store.clone(),
            issuer,
            audit,
            provider: PROVIDER.to_owned(),
            pki,
            mesh_addresses: vec!["control.example:4443".to_owned()],
            peer_address: String::new(),
            watches: Watches::new(bounds.watches, stop.clone()),
            policies: Policies::default(),
            backups: Backups::new(store.clone(), seal.secret()),
            rates: Rates::new(bounds.calls_per_minute),
            uses,
            image_digests: ImageDigests::new(bounds.fetches, stop.clone()),
            hasher: Hasher::default(),
            published: Published::default(),
            vpn: None,
            vpn_health: control_api::vpn::VpnHealth::default(),
            surveyor: Arc::new(control_api::doctor::Nowhere),
        });
        let routes = Services::new(Arc::clone(&core)).routes();
        let settings = LoginSettings {
            redirects: Redirects::default(),
            token_life_ms: LIFE_MS,
            is_secure: false,
            provider: None,
        };
        let login = Login::new(Arc::clone(&core), seal.clone(), settings).unwrap();
        let front = Front::new(Arc::new(ApiGate::new(core)), routes).with_pages(Arc::new(login));
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
            seal,
            stop,
            tasks,
            _dir: dir,
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
        let permit = Permit::system(SystemActor::Gateway);
        let command = Command::new(self.store.now(), "test", op);
        self.store.propose(&permit, &command).await.unwrap()
    }

    /// Lets so much time pass without a sign of life of any machine, milliseconds.
    pub(crate) async fn silence(&self, ms: u64) {
        let permit = Permit::system(SystemActor::Gateway);
        let later = self.store.now().plus_ms(ms);
        let command = Command::new(later, "test", Tick::default());
        self.store.propose(&permit, &command).await.unwrap();
    }

    /// Tenant with a project; the project's id and an owner's token.
    pub(crate) async fn tenant(&self, login: &str) -> (String, String) {
        let wire = self.as_admin();
        let request = admin::TenantServiceCreateRequest {
            name: login.to_owned(),
            ..Default::default()
        };
        let mut tenants = admin::tenant_service_client::TenantServiceClient::new(wire.clone());
        tenants.create(request).await.unwrap();
        let request = api::ProjectServiceCreateRequest {
            login: login.to_owned(),
            name: format!("{login}-project"),
            description: String::new(),
            avatar_url: None,
            labels: None,
        };
        let mut projects = api::project_service_client::ProjectServiceClient::new(wire);
        let made = projects.create(request).await.unwrap().into_inner();
        let project = made.project.unwrap().uuid;
        let token = self.token(login, &project, api::ProjectRole::Owner).await;
        (project, token)
    }

    /// A token of a user with a role in a project.
    pub(crate) async fn token(&self, user: &str, project: &str, role: api::ProjectRole) -> String {
        let inner = api::TokenServiceCreateRequest {
            project_roles: [(project.to_owned(), role.into())].into(),
            ..Default::default()
        };
        self.token_of(user, inner).await.1
    }

    /// A token with any rights: its id and its secret.
    pub(crate) async fn token_of(
        &self,
        user: &str,
        inner: api::TokenServiceCreateRequest,
    ) -> (String, String) {
        let mut tokens = admin::token_service_client::TokenServiceClient::new(self.as_admin());
        let request = admin::TokenServiceCreateRequest {
            user: Some(user.to_owned()),
            token_create_request: Some(inner),
        };
        let made = tokens.create(request).await.unwrap().into_inner();
        (made.token.unwrap().uuid, made.secret)
    }

    /// A token as a log-in makes it: its rights are what its user's memberships give.
    pub(crate) async fn login(&self, user: &str) -> String {
        let made = self
            .hardware(CreateToken {
                id: TokenId::new(Uuid::now_v7()),
                user: user.to_owned(),
                description: String::new(),
                labels: Default::default(),
                permissions: Vec::new(),
                expires: self.store.now().plus_ms(LIFE_MS),
                token_type: TokenType::User,
                project_roles: Default::default(),
                tenant_roles: Default::default(),
                admin_role: None,
                infra_role: None,
                machine_roles: Default::default(),
                warrant: None,
            })
            .await
            .token()
            .unwrap();
        let issuer = token::issuer(&self.store, &self.seal, "https://test.example").await;
        let (issued, expires) = (made.issued_at.ms() / 1000, made.expires.ms() / 1000);
        let id = made.id.to_string();
        let signed = issuer
            .unwrap()
            .sign(token::TokenKind::User, user, &id, issued, expires);
        signed.unwrap()
    }

    /// Partition "lab", size "small", image, super network, and a leaf switch.
    pub(crate) async fn data_centre(&self) {
        let wire = self.as_admin();
        let partition = api::Partition {
            id: "lab".into(),
            ..Default::default()
        };
        admin::partition_service_client::PartitionServiceClient::new(wire.clone())
            .create(admin::PartitionServiceCreateRequest {
                partition: Some(partition),
            })
            .await
            .unwrap();
        admin::size_service_client::SizeServiceClient::new(wire.clone())
            .create(admin::SizeServiceCreateRequest {
                size: Some(small()),
            })
            .await
            .unwrap();
        admin::image_service_client::ImageServiceClient::new(wire.clone())
            .create(admin::ImageServiceCreateRequest {
                image: Some(debian()),
            })
            .await
            .unwrap();
        let request = admin::NetworkServiceCreateRequest {
            id: Some("super".into()),
            partition: Some("lab".into()),
            r#type: api::NetworkType::Super.into(),
            prefixes: vec!["10.128.0.0/16".into()],
            default_child_prefix_length: Some(api::ChildPrefixLength {
                ipv4: Some(24),
                ipv6: None,
            }),
            ..Default::default()
        };
        admin::network_service_client::NetworkServiceClient::new(wire)
            .create(request)
            .await
            .unwrap();
        let ports = (1..=8).map(|port| (format!("swp{port}"), None)).collect();
        self.hardware(RegisterSwitch {
            id: "leaf1".parse().unwrap(),
            partition: "lab".parse().unwrap(),
            rack: "rack-1".into(),
            room: String::new(),
            management_ip: None,
            vtep_ip: None,
            ports,
            identifiers: Default::default(),
            os_vendor: "linux".into(),
            os_version: "12".into(),
            agent_version: "v0".into(),
            hears: false,
        })
        .await;
    }

    /// A project's network out of the super network.
    pub(crate) async fn network(&self, token: &str, project: &str) -> String {
        let mut networks =
            api::network_service_client::NetworkServiceClient::new(self.wire(Some(token)));
        let request = api::NetworkServiceCreateRequest {
            project: project.to_owned(),
            name: Some("net".into()),
            partition: Some("lab".into()),
            ..Default::default()
        };
        networks
            .create(request)
            .await
            .unwrap()
            .into_inner()
            .network
            .unwrap()
            .id
    }

    /// A machine that booted, was wiped and waits; its port is `swp<number>`.
    pub(crate) async fn waiting_machine(&self, number: u128) -> String {
        self.waiting_machine_at(number, number).await
    }

    /// The same, which says that it hangs at `swp<port>`.
    pub(crate) async fn waiting_machine_at(&self, number: u128, port: u128) -> String {
        let id = MachineId::new(Uuid::from_u128(number));
        let mac: MacAddr = format!("02:00:00:00:00:{number:02x}").parse().unwrap();
        let partition: PartitionId = "lab".parse().unwrap();
        let seen_at = self.store.now();
        self.hardware(MachineSeen {
            id,
            partition,
            mac: Some(mac),
            seen_at,
            to_disk: false,
            stated_at: None,
        })
        .await;
        for kind in [EventKind::Preparing, EventKind::Registering] {
            self.event(id, kind).await;
        }
        self.hardware(registration(id, mac, port)).await;
        let disk = DiskWipe {
            name: "/dev/vda".into(),
            ..Default::default()
        };
        self.hardware(WipeDone {
            id,
            disks: vec![disk],
        })
        .await;
        self.event(id, EventKind::Waiting).await;
        id.to_string()
    }

    pub(crate) async fn event(&self, id: MachineId, kind: EventKind) {
        let time = self.store.now();
        self.hardware(MachineEvent {
            id,
            kind,
            message: String::new(),
            time,
        })
        .await;
    }

    /// The BMC agent carries out every open order of a kind, once there is one.
    pub(crate) async fn bmc_obeys(&self, action: BmcAction) {
        let partition: PartitionId = "lab".parse().unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let open = self.store.read_local(|tables| {
                let orders = control_state::life::bmc_desired(tables, &partition);
                orders
                    .iter()
                    .find(|order| order.action == action)
                    .map(|order| order.id)
            });
            if let Some(id) = open.unwrap() {
                let partition = partition.clone();
                self.hardware(BmcOrderDone {
                    id,
                    partition,
                    error: None,
                    power_state: None,
                    nonce: None,
                })
                .await;
                self.leaf_obeys().await;
                return;
            }
            assert!(Instant::now() < until, "no order {action:?} came");
            tokio::task::yield_now().await;
        }
    }

    /// The leaf moves its ports as it shall, and says so.
    pub(crate) async fn leaf_obeys(&self) {
        let id: SwitchId = "leaf1".parse().unwrap();
        let wanted = self.store.read_local(|tables| {
            let desired = control_state::life::Fabric::of(tables).desired(&id);
            (desired.unwrap().ports, tables.revision())
        });
        let (ports, applied_generation) = wanted.unwrap();
        let ports = ports.into_iter().map(|port| {
            let seen = PortObserved {
                admin_up: port.admin_up,
                oper_up: true,
                vni: port.vni,
                ..PortObserved::default()
            };
            (port.name, seen)
        });
        self.hardware(ReportSwitch {
            id,
            applied_term: 1,
            applied_generation,
            duration_ms: 1,
            error: None,
            ports: ports.collect(),
        })
        .await;
    }
}

fn registration(id: MachineId, mac: MacAddr, number: u128) -> RegisterMachine {
    let neighbour = Neighbour {
        chassis_id: "leaf1".into(),
        port_id: format!("swp{number}"),
        system_name: "leaf1".into(),
        ..Neighbour::default()
    };
    let nic = Nic {
        name: "eth0".into(),
        mac,
        identifier: "0000:00:03.0".into(),
        vendor: String::new(),
        model: String::new(),
        speed: 1000,
        neighbours: vec![neighbour],
        boot: true,
    };
    let disk = BlockDevice {
        name: "/dev/vda".into(),
        size: 20 << 30,
        serial: format!("disk-{number}"),
        ..Default::default()
    };
    RegisterMachine {
        id,
        seen_in: None,
        hammer_version: "v0".into(),
        boot_id: "boot-1".into(),
        hardware: Hardware {
            memory: 1 << 30,
            cpus: vec![Cpu {
                cores: 2,
                threads: 2,
                ..Default::default()
            }],
            disks: vec![disk],
            nics: vec![nic],
            ..Default::default()
        },
        bios: Default::default(),
        fru: Default::default(),
        bmc_address: String::new(),
        bmc_mac: String::new(),
        bmc_version: String::new(),
    }
}

pub(crate) fn small() -> api::Size {
    use api::SizeConstraintType as Kind;
    let constraint = |kind: Kind, min, max| api::SizeConstraint {
        r#type: kind.into(),
        min,
        max,
        identifier: None,
    };
    api::Size {
        id: "small".into(),
        constraints: vec![
            constraint(Kind::Cores, 1, 4),
            constraint(Kind::Memory, 1, 4 << 30),
            constraint(Kind::Storage, 1, 100 << 30),
        ],
        ..Default::default()
    }
}

pub(crate) fn debian() -> api::Image {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let labels = [("metalmesh.dev/digest".to_owned(), digest)].into();
    api::Image {
        id: "debian-12.0.20260101".into(),
        meta: Some(api::Meta {
            labels: Some(api::Labels { labels }),
            ..Default::default()
        }),
        url: "http://images.example/debian.tar.zst".into(),
        features: vec![api::ImageFeature::Machine.into()],
        classification: api::ImageClassification::Supported.into(),
        ..Default::default()
    }
}
