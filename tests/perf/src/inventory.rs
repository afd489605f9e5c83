//! A store of many machines: how soon it serves after a crash, and how fast it lists.
//!
//! It is the product's own state and the product's own API, with tokens, over TLS.

use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use clap::{Args, Subcommand};
use control_api::services::Services;
use control_api::{FetchLimits, ImageDigests, NodeContext};
use control_backup::Backups;
use control_front::Front;
use control_front::serve;
use control_gate::ApiGate;
use control_gate::bootstrap::{admin_token, tenants};
use control_gate::passwords::Hasher;
use control_gate::{Policies, Rates, ServiceContext, Uses, token};
use control_pki::{Pki, SealingKey};
use control_presence::Presence;
use control_state::{BlockDevice, Cpu, Hardware, Neighbour, Nic};
use control_store::{AuditTrail, Store, StoreConfig};
use control_upstream::Upstream;
use control_watch::{WatchLimits, Watches};
use http::uri::PathAndQuery;
use prost::Message as _;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_types::MacAddr;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Request;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::service::Routes;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use crate::api::seed;
use crate::cluster::{POLL, Site, free_ports};
use crate::process::Process;
use crate::procfs;
use crate::sample::Latencies;
use crate::wire::AsArrived;

/// Machines in the store.
const MACHINES: u32 = 100_000;
/// Partitions that they are in, evenly; one is listed.
const PARTITIONS: u32 = 10;
/// Commands on their way while the machines are made.
const WRITERS: u32 = 256;
/// How often a partition is listed.
const LISTS: usize = 20;
/// How long the start may take before the bench gives up.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long making the machines may take.
const FILL_TIMEOUT: Duration = Duration::from_secs(600);
/// Life of the token.
const TOKEN_LIFE_MS: u64 = 3_600_000;
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 << 20;
const LIST: &str = "/metalstack.admin.v2.MachineService/List";
const PROVIDER: &str = "metal-stack";
const TOKEN_FILE: &str = "admin-token";

/// What was measured.
#[derive(Debug)]
pub(crate) struct Measured {
    /// From the start of the process to its first answer, seconds.
    pub(crate) restart_s: f64,
    /// To list the machines of one partition.
    pub(crate) lists: Latencies,
    /// The server's CPU time for each.
    pub(crate) list_cpu_us: u64,
    /// Machines in an answer.
    pub(crate) listed: usize,
    /// Its length.
    pub(crate) bytes: usize,
    pub(crate) rss_kib: u64,
}

#[derive(Debug, Args)]
pub(crate) struct InventoryArgs {
    #[command(subcommand)]
    step: Step,
    /// Data directory
    #[arg(long, global = true, default_value = ".")]
    dir: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// Make the machines; runs until it is killed
    Make,
    /// Serve them
    Serve {
        #[arg(long)]
        listen: SocketAddr,
        /// The server's certificate, PEM
        #[arg(long)]
        certificate: PathBuf,
        /// Its key, PEM
        #[arg(long)]
        key: PathBuf,
    },
}

/// A step, in a process of its own.
pub(crate) async fn run(args: InventoryArgs) -> Result<()> {
    match args.step {
        Step::Make => make(&args.dir).await,
        Step::Serve {
            listen,
            certificate,
            key,
        } => serve(&args.dir, listen, &certificate, &key).await,
    }
}

/// Fills a store, kills it, and measures the next start.
pub(crate) async fn measure(site: &Site) -> Result<Measured> {
    let dir = site.dir.join("inventory");
    std::fs::create_dir(&dir)?;
    let this = std::env::current_exe()?.display().to_string();
    let step = |name: &str| {
        let dir = format!("--dir={}", dir.display());
        vec![this.clone(), "inventory".into(), name.into(), dir]
    };
    let log = site.dir.join("inventory.log");
    let mut filling = Process::start(&step("make"), &log)?;
    let token = dir.join(TOKEN_FILE);
    let until = Instant::now() + FILL_TIMEOUT;
    while !token.exists() {
        filling.check()?;
        ensure!(Instant::now() < until, "the machines were not made in time");
        tokio::time::sleep(POLL).await;
    }
    filling.kill().await?;
    let token = std::fs::read_to_string(token)?;

    let port = free_ports(1)?.first().copied().context("no port")?;
    let mut arguments = step("serve");
    arguments.extend([
        format!("--listen=127.0.0.1:{port}"),
        format!("--certificate={}", site.certs.certificate.display()),
        format!("--key={}", site.certs.key.display()),
    ]);
    let began = Instant::now();
    let mut serving = Process::start(&arguments, &log)?;
    let mut lister = Lister {
        channel: channel(port, &site.certs.ca)?,
        token,
    };
    while lister.partitions().await.is_err() {
        serving.check()?;
        ensure!(began.elapsed() < START_TIMEOUT, "it does not serve in time");
        tokio::time::sleep(POLL).await;
    }
    let restart_s = began.elapsed().as_secs_f64();
    let (mut lists, mut answer) = (Latencies::default(), Bytes::new());
    let cpu_before = procfs::cpu_us(serving.pid())?;
    for _ in 0..LISTS {
        let began = Instant::now();
        answer = lister.machines().await?;
        lists.add(began.elapsed());
    }
    let cpu_us = procfs::cpu_us(serving.pid())? - cpu_before;
    let bytes = answer.len();
    let listed = admin::MachineServiceListResponse::decode(answer)?
        .machines
        .len();
    if listed != (MACHINES / PARTITIONS) as usize {
        bail!("{listed} machines were listed");
    }
    Ok(Measured {
        restart_s,
        lists,
        list_cpu_us: cpu_us / LISTS as u64,
        listed,
        bytes,
        rss_kib: procfs::rss_kib(serving.pid())?,
    })
}

fn channel(port: u16, ca: &str) -> Result<Channel> {
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(ca))
        .domain_name("localhost");
    let endpoint = Endpoint::from_shared(format!("https://127.0.0.1:{port}"))?;
    Ok(endpoint.tls_config(tls)?.connect_lazy())
}

struct Lister {
    channel: Channel,
    token: String,
}

impl Lister {
    fn request<T>(&self, message: T) -> Result<Request<T>> {
        let mut request = Request::new(message);
        let bearer = MetadataValue::try_from(format!("Bearer {}", self.token))?;
        request.metadata_mut().insert("authorization", bearer);
        Ok(request)
    }

    async fn partitions(&mut self) -> Result<usize> {
        use api::partition_service_client::PartitionServiceClient;
        let request = self.request(api::PartitionServiceListRequest::default())?;
        let mut client = PartitionServiceClient::new(self.channel.clone());
        Ok(client.list(request).await?.into_inner().partitions.len())
    }

    /// The answer as it arrived: what its reader does with it is not the server's time.
    async fn machines(&mut self) -> Result<Bytes> {
        let query = api::MachineQuery {
            partition: Some(partition(0)),
            ..Default::default()
        };
        let request = self.request(admin::MachineServiceListRequest { query: Some(query) })?;
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        grpc.ready().await?;
        let path = PathAndQuery::from_static(LIST);
        let answer = grpc.unary(request, path, AsArrived::default()).await?;
        Ok(answer.into_inner())
    }
}

/// The parts of a node that the API needs.
async fn open(dir: &Path) -> Result<(Store, Pki, token::Issuer, Backups)> {
    let store = Store::open(StoreConfig::new(dir, 1, "bench")).await?;
    let seal = SealingKey::load(&dir.join("seal.key"), true)?;
    let pki = Pki::open(store.clone(), &seal, "bench.example").await?;
    let issuer = token::issuer(&store, &seal, "https://bench.example").await?;
    let backups = Backups::new(store.clone(), seal.secret());
    Ok((store, pki, issuer, backups))
}

async fn make(dir: &Path) -> Result<()> {
    let (store, _pki, issuer, _backups) = open(dir).await?;
    tenants(&store, PROVIDER).await?;
    for number in 0..PARTITIONS {
        seed::partition(&store, &partition(number)).await?;
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            for number in (writer..MACHINES).step_by(WRITERS as usize) {
                register(&store, number).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    let token = admin_token(&store, &issuer, "bench", TOKEN_LIFE_MS).await?;
    // The file's name says that all is done.
    let part = dir.join("token.part");
    let mut options = std::fs::File::options();
    let mut file = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&part)?;
    std::io::Write::write_all(&mut file, token.as_bytes())?;
    std::fs::rename(part, dir.join(TOKEN_FILE))?;
    // Being killed is part of what is measured.
    std::future::pending().await
}

async fn serve(dir: &Path, listen: SocketAddr, certificate: &Path, key: &Path) -> Result<()> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)?.collect();
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain?, PrivateKeyDer::from_pem_file(key)?)?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let (store, pki, issuer, backups) = open(dir).await?;
    let stop = CancellationToken::new();
    let (audit, writer) = AuditTrail::new(store.clone());
    let (uses, use_writer) = Uses::new(store.clone());
    let context = Arc::new(ServiceContext {
        store: store.clone(),
        issuer,
        audit,
        provider: PROVIDER.to_owned(),
        policies: Policies::default(),
        rates: Rates::new(0),
        uses,
    });
    let presence = Presence::new(store);
    let node = Arc::new(NodeContext {
        pki: pki.clone(),
        mesh_addresses: Vec::new(),
        peer_address: String::new(),
        watches: Watches::new(WatchLimits::default(), stop.clone()),
        backups,
        image_digests: ImageDigests::new(FetchLimits::default(), stop.clone()),
        hasher: Arc::new(Hasher::default()),
        presence: presence.clone(),
        vpn: None,
        vpn_health: control_vpn::VpnHealth::default(),
        surveyor: Arc::new(control_api::doctor::Nowhere),
    });
    let mut routes = Routes::builder();
    Services::new(Arc::clone(&context), node).add_to(&mut routes);
    Upstream::new(Arc::clone(&context), pki, presence, stop.clone()).add_to(&mut routes);
    let front = Front::new(Arc::new(ApiGate::new(context)), routes.routes());
    let listener = TcpListener::bind(listen).await?;
    let mut trail = JoinSet::new();
    trail.spawn(writer.run(stop.clone()));
    trail.spawn(use_writer.run(stop.clone()));
    serve::serve(listener, Some(Arc::new(tls)), front, stop).await;
    Ok(())
}

fn partition(number: u32) -> String {
    format!("part-{number}")
}

async fn register(store: &Store, number: u32) -> Result<()> {
    let [a, b, c, d] = number.to_be_bytes();
    let mac = MacAddr([2, 0, a, b, c, d]);
    let partition = partition(number % PARTITIONS);
    seed::register(store, number, &partition, hardware(number, mac)).await
}

fn hardware(number: u32, mac: MacAddr) -> Hardware {
    let disk = |name: &str| BlockDevice {
        name: name.into(),
        size: 960 << 30,
        serial: format!("{name}-{number}"),
        ..BlockDevice::default()
    };
    let nic = |name: &str, mac: MacAddr, leaf: &str| Nic {
        name: name.into(),
        mac,
        identifier: mac.to_string(),
        vendor: "Bench".into(),
        model: "25G".into(),
        speed: 25_000,
        neighbours: vec![Neighbour {
            chassis_id: leaf.into(),
            port_id: format!("swp{number}"),
            system_name: leaf.into(),
            ..Neighbour::default()
        }],
        boot: leaf == "leaf-1",
    };
    let mut second = mac.0;
    second[1] = 1;
    Hardware {
        memory: 512 << 30,
        cpus: vec![
            Cpu {
                cores: 32,
                threads: 64,
                ..Cpu::default()
            };
            2
        ],
        disks: vec![disk("/dev/nvme0n1"), disk("/dev/nvme1n1")],
        nics: vec![
            nic("eth0", mac, "leaf-1"),
            nic("eth1", MacAddr(second), "leaf-2"),
        ],
        ..Hardware::default()
    }
}
