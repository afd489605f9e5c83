//! Fills a data directory of the product, by its own commands and nothing else.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use control_gate::bootstrap::tenants;
use control_gate::token;
use control_gate::token::{Issuer, TokenKind};
use control_pki::SealingKey;
use control_state::{
    Bios, BlockDevice, BootConfiguration, ChildLength, Classification, Command, Cpu,
    CreateChildNetwork, CreateImage, CreateNetwork, CreatePartition, CreateProject, CreateSize,
    CreateTenant, CreateToken, DiskWipe, EditorViewer, EventKind, Fru, Hardware, Image,
    ImageFeature, MachineEvent, MachineSeen, Meta, Neighbour, NetworkType, Nic, Op, Partition,
    ProjectRole, RegisterMachine, RegisterSwitch, Size, SizeConstraint, SizeConstraintType,
    TenantRole, TokenType, UNKNOWN_MACHINES_MAX, WipeDone, label,
};
use control_store::{Store, StoreConfig};
use proto_types::{Digest, MacAddr, MachineId, ProjectId, Timestamp, TokenId};
use tests_support::permit_for;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Where the machines are that can be allocated.
pub(super) const HALL: &str = "hall";
/// Where machines come up that nobody knew.
pub(super) const YARD: &str = "yard";
pub(crate) const SIZE: &str = "small";
pub(crate) const IMAGE: &str = "debian-12.0.20260101";
/// Projects; the networks are theirs in turn.
pub(super) const PROJECTS: u32 = 20;
/// Machines below one pair of switches.
const RACK: u32 = 40;
/// Racks of a room: 1,000 machines.
const ROOM: u32 = 25;
const TENANT: &str = "bench";
/// The product's names when nobody says others.
const CLUSTER: &str = "metalmesh";
const PROVIDER: &str = "metal-stack";
const ISSUER: &str = "https://metalmesh.local";
/// Commands on their way at the same time.
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
}

/// The administrator's, the machines' and the tenant's token of a filled directory.
pub(crate) fn tokens(dir: &Path) -> Result<[String; 3]> {
    let text = std::fs::read_to_string(dir.with_extension(TOKENS_FILE))?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let lines: Result<[String; 3], _> = lines.try_into();
    lines.map_err(|_| anyhow::anyhow!("three tokens were expected"))
}

/// Project `number`.
pub(super) fn project(number: u32) -> ProjectId {
    ProjectId::from(Uuid::from_u128(u128::from(number) + 1))
}

/// Id of network `number`.
pub(super) fn network(number: u32) -> String {
    format!("network-{number}")
}

/// Room `number`, from 1.
pub(super) fn room(number: u32) -> String {
    format!("room-{number}")
}

/// Fills and ends.
pub(crate) async fn run(args: FillArgs) -> Result<()> {
    let dir = &args.dir;
    let seal = SealingKey::load_or_create(&dir.join("seal.key"))?;
    let seal = seal.data_key(&dir.join("data.key"), true)?;
    let store = Store::open(StoreConfig::new(dir, 1, CLUSTER)).await?;
    let issuer = token::issuer(&store, &seal, ISSUER).await?;
    tenants(&store, PROVIDER).await?;
    place(&store).await?;
    tenant(&store, args.networks).await?;
    if args.agents > 0 {
        crate::link::fill(&store, &seal, &args).await?;
    } else {
        each(&store, args.machines.div_ceil(RACK) * 2, leaf).await?;
        each(&store, args.machines, machine).await?;
    }
    let admin = CreateToken {
        admin_role: Some(EditorViewer::Editor),
        ..of_user(&store, "admin")
    };
    let machines = CreateToken {
        machine_roles: [("*".to_owned(), EditorViewer::Editor)].into(),
        ..of_user(&store, "admin")
    };
    let tenant = CreateToken {
        project_roles: [("*".to_owned(), ProjectRole::Owner)].into(),
        tenant_roles: [("*".to_owned(), TenantRole::Owner)].into(),
        ..of_user(&store, TENANT)
    };
    let mut lines = String::new();
    for op in [admin, machines, tenant] {
        lines += &signed(&store, &issuer, op).await?;
        lines.push('\n');
    }
    let mut file = std::fs::File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(dir.with_extension(TOKENS_FILE))?;
    file.write_all(lines.as_bytes())?;
    store.shutdown().await;
    Ok(())
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
    // Machines become known here as fast as they are written.
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

async fn leaf(store: Store, number: u32) -> Result<()> {
    let rack = number / 2;
    let ports = (0..RACK).map(|port| (format!("swp{port}"), None));
    let op = RegisterSwitch {
        id: format!("leaf-{number}").parse()?,
        partition: HALL.parse()?,
        rack: format!("rack-{rack}"),
        room: room(rack / ROOM + 1),
        management_ip: None,
        vtep_ip: None,
        ports: ports.collect(),
        identifiers: Default::default(),
        os_vendor: "linux".into(),
        os_version: String::new(),
        agent_version: String::new(),
        hears: false,
    };
    propose(&store, op).await.map(drop)
}

/// A tenant with projects, whose networks come out of one large one.
async fn tenant(store: &Store, networks: u32) -> Result<()> {
    let op = CreateTenant {
        login: TENANT.parse()?,
        name: TENANT.to_owned(),
        email: String::new(),
        description: String::new(),
        avatar_url: String::new(),
        labels: Default::default(),
        owner: Some(TENANT.parse()?),
    };
    propose(store, op).await?;
    for number in 0..PROJECTS {
        let op = CreateProject {
            id: project(number),
            tenant: TENANT.parse()?,
            name: format!("project-{number}"),
            description: String::new(),
            avatar_url: None,
            labels: Default::default(),
            owner: None,
        };
        propose(store, op).await?;
    }
    let large = CreateNetwork {
        id: "large".parse()?,
        kind: NetworkType::Super,
        name: None,
        description: None,
        partition: Some(HALL.parse()?),
        project: None,
        labels: Default::default(),
        prefixes: vec!["10.0.0.0/8".parse()?],
        destination_prefixes: Vec::new(),
        default_child_length: ChildLength {
            v4: Some(22),
            v6: None,
        },
        min_child_length: ChildLength::default(),
        nat: None,
        vrf: None,
        parent: None,
        additional_announcable_cidrs: Vec::new(),
        length: ChildLength::default(),
        family: None,
    };
    propose(store, large).await?;
    each(store, networks, child).await
}

async fn child(store: Store, number: u32) -> Result<()> {
    let op = CreateChildNetwork {
        id: network(number).parse()?,
        project: project(number % PROJECTS),
        name: None,
        description: None,
        labels: Default::default(),
        partition: Some(HALL.parse()?),
        parent: None,
        length: ChildLength::default(),
        family: None,
    };
    propose(&store, op).await.map(drop)
}

/// Where a machine's cables go.
#[derive(Clone, Debug)]
pub(crate) struct Cables {
    pub(crate) partition: String,
    pub(crate) leaves: [String; 2],
    pub(crate) port: String,
}

async fn machine(store: Store, number: u32) -> Result<()> {
    let rack = number / RACK;
    let cables = Cables {
        partition: HALL.to_owned(),
        leaves: [0, 1].map(|side| format!("leaf-{}", rack * 2 + side)),
        port: format!("swp{}", number % RACK),
    };
    machine_at(store, number, cables).await
}

/// A machine as pixie and hammer report it first.
pub(crate) async fn register(
    store: &Store,
    number: u32,
    partition: &str,
    hardware: Hardware,
) -> Result<()> {
    let id = machine_id(number);
    let seen = MachineSeen {
        id,
        partition: partition.parse()?,
        mac: hardware.nics.first().map(|nic| nic.mac),
        seen_at: store.now(),
        to_disk: false,
        stated_at: None,
    };
    propose(store, seen).await?;
    let registration = RegisterMachine {
        id,
        seen_in: None,
        hammer_version: "1.0.0".into(),
        boot_id: format!("boot-{number}"),
        hardware,
        bios: Bios {
            version: "2.4".into(),
            vendor: "Bench".into(),
            date: "01/02/2026".into(),
        },
        fru: Fru::default(),
        bmc_address: String::new(),
        bmc_mac: String::new(),
        bmc_version: String::new(),
    };
    propose(store, registration).await.map(drop)
}

fn machine_id(number: u32) -> MachineId {
    MachineId::from(Uuid::from_u128(u128::from(number) + 1))
}

/// A machine as agents report it on its way until it is on offer.
pub(crate) async fn machine_at(store: Store, number: u32, cables: Cables) -> Result<()> {
    let id = machine_id(number);
    let hardware = hardware(number, &cables);
    let disks = hardware.disks.iter().map(|disk| DiskWipe {
        name: disk.name.clone(),
        serial: disk.serial.clone(),
        method: "nvme-format".into(),
        ..DiskWipe::default()
    });
    let disks = disks.collect();
    register(&store, number, &cables.partition, hardware).await?;
    propose(&store, WipeDone { id, disks }).await?;
    let waits = MachineEvent {
        id,
        kind: EventKind::Waiting,
        message: String::new(),
        time: store.now(),
    };
    propose(&store, waits).await.map(drop)
}

fn hardware(number: u32, cables: &Cables) -> Hardware {
    let disk = |name: &str| BlockDevice {
        name: name.into(),
        size: 960 << 30,
        serial: format!("{name}-{number}"),
        ..BlockDevice::default()
    };
    let nic = |side: u8| {
        let [a, b, c, d] = number.to_be_bytes();
        let mac = MacAddr([2, side, a, b, c, d]);
        let leaf = cables.leaves[usize::from(side)].clone();
        Nic {
            name: format!("eth{side}"),
            mac,
            identifier: mac.to_string(),
            vendor: "Bench".into(),
            model: "25G".into(),
            speed: 25_000,
            neighbours: vec![Neighbour {
                chassis_id: leaf.clone(),
                port_id: cables.port.clone(),
                system_name: leaf,
                ..Neighbour::default()
            }],
            boot: side == 0,
        }
    };
    let cpu = Cpu {
        vendor: "Bench".into(),
        model: "32 cores".into(),
        cores: 32,
        threads: 64,
    };
    Hardware {
        memory: 512 << 30,
        cpus: vec![cpu.clone(), cpu],
        disks: vec![disk("/dev/nvme0n1"), disk("/dev/nvme1n1")],
        nics: vec![nic(0), nic(1)],
        ..Hardware::default()
    }
}
