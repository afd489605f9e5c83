//! Fills a data directory of the product, by its own commands and nothing else.

mod machines;
mod nodes;
mod tenants;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use control_gate::bootstrap;
use control_gate::token;
use control_gate::token::{Issuer, TokenKind};
use control_pki::SealingKey;
use control_state::{
    BootConfiguration, Classification, Command, CreateImage, CreatePartition, CreateSize,
    CreateToken, EditorViewer, Image, ImageFeature, Meta, Op, Partition, ProjectRole, Size,
    SizeConstraint, SizeConstraintType, TenantRole, TokenType, UNKNOWN_MACHINES_MAX, label,
};
use control_store::{Store, StoreConfig};
use proto_types::{Digest, ProjectId, Timestamp, TokenId};
use tests_support::permit_for;
use tokio::task::JoinSet;
use uuid::Uuid;

pub(crate) use machines::{Cables, machine_at, register};
use machines::{RACK, leaf, machine};

/// Partition of the machines that can be allocated.
pub(crate) const HALL: &str = "hall";
/// Partition where unknown machines boot.
pub(super) const YARD: &str = "yard";
pub(crate) const SIZE: &str = "small";
pub(crate) const IMAGE: &str = "debian-12.0.20260101";
/// Projects; the networks are theirs in turn.
pub(crate) const PROJECTS: u32 = 20;
const TENANT: &str = "bench";
/// The product's default names.
const CLUSTER: &str = "metalmesh";
const PROVIDER: &str = "metal-stack";
const ISSUER: &str = "https://metalmesh.local";
/// Commands in flight at the same time.
const WRITERS: u32 = 128;
/// Life of the tokens.
const TOKEN_LIFE_MS: u64 = 24 * 3_600_000;
const TOKENS_FILE: &str = "tokens";

#[derive(Debug, Args)]
pub(crate) struct FillArgs {
    /// Data directory
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Machines on offer
    #[arg(long)]
    pub(crate) machines: u32,
    /// Switches whose agents have joined, instead of as many as the machines need
    #[arg(long, default_value_t = 0)]
    pub(crate) agents: u32,
    /// Networks of projects
    #[arg(long)]
    networks: u32,
    /// Resource class of the machines, which become nodes of Ironic's API by it
    #[arg(long)]
    class: Option<String>,
}

/// The administrator's, the agents' and the tenant's token of a filled directory. The agents' is for
/// every machine, and for the partition's infrastructure.
pub(crate) fn tokens(dir: &Path) -> Result<[String; 3]> {
    let text = std::fs::read_to_string(dir.with_extension(TOKENS_FILE))?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let lines: Result<[String; 3], _> = lines.try_into();
    lines.map_err(|_| anyhow::anyhow!("three tokens were expected"))
}

/// Project `number`.
pub(crate) fn project(number: u32) -> ProjectId {
    ProjectId::from(Uuid::from_u128(u128::from(number) + 1))
}

/// Id of network `number`.
pub(crate) fn network(number: u32) -> String {
    format!("network-{number}")
}

/// Room `number`, from 1.
pub(super) fn room(number: u32) -> String {
    format!("room-{number}")
}

/// Fills and ends.
pub(crate) async fn run(args: FillArgs) -> Result<()> {
    let filling = Filling::begin(&args.dir, args.networks).await?;
    let store = &filling.store;
    if args.agents > 0 {
        crate::link::fill(store, &filling.seal, &args).await?;
    } else {
        each(store, args.machines.div_ceil(RACK) * 2, leaf).await?;
        each(store, args.machines, machine).await?;
    }
    if let Some(class) = &args.class {
        nodes::enrol(store, args.machines, class).await?;
    }
    filling.end(&args.dir).await
}

/// A data directory with partitions, a size, an image, and a tenant with projects and networks.
pub(crate) struct Filling {
    pub(crate) store: Store,
    pub(crate) seal: SealingKey,
    issuer: Issuer,
}

impl Filling {
    pub(crate) async fn begin(dir: &Path, networks: u32) -> Result<Self> {
        let seal = SealingKey::load(&dir.join("seal.key"), true)?;
        let seal = seal.data_key(&dir.join("data.key"), true)?;
        let store = Store::open(StoreConfig::new(dir, 1, CLUSTER)).await?;
        let issuer = token::issuer(&store, &seal, ISSUER).await?;
        bootstrap::tenants(&store, PROVIDER).await?;
        place(&store).await?;
        tenants::tenant(&store, networks).await?;
        Ok(Self {
            store,
            seal,
            issuer,
        })
    }

    /// Writes the tokens beside the directory, and closes it.
    pub(crate) async fn end(self, dir: &Path) -> Result<()> {
        let store = &self.store;
        let admin = CreateToken {
            admin_role: Some(EditorViewer::Editor),
            ..of_user(store, "admin")
        };
        let machines = CreateToken {
            machine_roles: [("*".to_owned(), EditorViewer::Editor)].into(),
            infra_role: Some(EditorViewer::Editor),
            ..of_user(store, "admin")
        };
        let tenant = CreateToken {
            project_roles: [("*".to_owned(), ProjectRole::Owner)].into(),
            tenant_roles: [("*".to_owned(), TenantRole::Owner)].into(),
            ..of_user(store, TENANT)
        };
        let mut lines = String::new();
        for op in [admin, machines, tenant] {
            lines += &signed(store, &self.issuer, op).await?;
            lines.push('\n');
        }
        let mut file = std::fs::File::options()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(dir.with_extension(TOKENS_FILE))?;
        file.write_all(lines.as_bytes())?;
        self.store.shutdown().await;
        Ok(())
    }
}

fn of_user(store: &Store, user: &str) -> CreateToken {
    CreateToken {
        id: TokenId::new(Uuid::now_v7()),
        user: user.to_owned(),
        description: String::new(),
        labels: Default::default(),
        permissions: Vec::new(),
        expires: store.now().plus_ms(TOKEN_LIFE_MS),
        token_type: TokenType::Api,
        project_roles: Default::default(),
        tenant_roles: Default::default(),
        admin_role: None,
        infra_role: None,
        machine_roles: Default::default(),
        warrant: None,
    }
}

async fn signed(store: &Store, issuer: &Issuer, op: CreateToken) -> Result<String> {
    let made = propose(store, op).await?.token()?;
    let (issued, expires) = (made.issued_at.ms() / 1000, made.expires.ms() / 1000);
    let (user, id) = (made.user.as_str(), made.id.to_string());
    Ok(issuer.sign(TokenKind::Api, user, &id, issued, expires)?)
}

pub(crate) async fn propose(store: &Store, op: impl Into<Op>) -> Result<control_state::Reply> {
    let command = Command::new(store.now(), TENANT, op);
    let permit = permit_for(command.op.name());
    Ok(store.propose(&permit, &command).await?)
}

/// Runs `make` for every number below `count`, many at a time.
pub(crate) async fn each<F>(
    store: &Store,
    count: u32,
    make: impl Fn(Store, u32) -> F + Clone + Send + 'static,
) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS.min(count) {
        let (store, make) = (store.clone(), make.clone());
        writers.spawn(async move {
            for number in (writer..count).step_by(WRITERS as usize) {
                make(store.clone(), number).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    Ok(())
}

pub(crate) async fn partition(store: &Store, name: &str) -> Result<()> {
    // The default limit of unknown machines would refuse the registrations of the bench.
    let unbounded = (
        label::UNKNOWN_MACHINES.to_owned(),
        UNKNOWN_MACHINES_MAX.to_string(),
    );
    let partition = Partition {
        id: name.parse()?,
        meta: Meta::labelled([unbounded].into()),
        description: String::new(),
        boot: BootConfiguration::default(),
        dns_servers: Vec::new(),
        ntp_servers: Vec::new(),
        mgmt_service_addresses: Vec::new(),
    };
    propose(store, CreatePartition(partition)).await.map(drop)
}

/// Partitions, a size, an image.
async fn place(store: &Store) -> Result<()> {
    for name in [HALL, YARD] {
        partition(store, name).await?;
    }
    let between = |kind, max| SizeConstraint {
        kind,
        min: 1,
        max,
        identifier: None,
    };
    let size = Size {
        id: SIZE.parse()?,
        meta: Meta::default(),
        name: None,
        description: None,
        constraints: vec![
            between(SizeConstraintType::Cores, 64),
            between(SizeConstraintType::Memory, 512 << 30),
            between(SizeConstraintType::Storage, 2 << 40),
        ],
    };
    propose(store, CreateSize(size)).await?;
    let digest = Digest::sha256([7; 32]).to_string();
    let image = Image {
        id: IMAGE.parse()?,
        meta: Meta::labelled([(label::DIGEST.to_owned(), digest)].into()),
        url: "http://images.example/debian.tar.zst".into(),
        name: None,
        description: None,
        features: [ImageFeature::Machine].into(),
        classification: Classification::Supported,
        expires_at: Timestamp::ZERO,
    };
    propose(store, CreateImage(image)).await.map(drop)
}
