//! The agents of all partitions: the product's own, on simulated switches, BMCs and networks.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agents_core::config::Config as CoreConfig;
use agents_kit::LogFormat;
use agents_kit::{AgentArgs, AgentKind, KeyArgs, StateDir};
use anyhow::{Context, Result};
use bmc_agent::{BmcAgent, Config as BmcConfig};
use control_client::Client;
use pixie_boot::{BmcMatch, BootFiles, Network, Range};
use pixie_server::config::{FetchLimits, Mode, NetworkConfig, Ports};
use pixie_server::{Config as PixieConfig, Pixie, mesh};
use proto_public::metalmesh::admin::v1::{self as mesh_admin, JoinServiceCreateRequest};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::bmc::{self, PASSWORD};
use crate::plan::{self, Plan, leaf_name, partition_name};
use crate::world::World;

/// Between two looks at all BMCs, seconds.
const BMC_INTERVAL_S: u64 = 300;
const LEASE_TIME_S: u32 = 3600;
/// An agent that could not start, because its sockets are still those of one that died.
const START_AGAIN: Duration = Duration::from_millis(100);
/// Length of the boot files, bytes.
const BOOT_FILE_LEN: usize = 4000;

/// Which agent, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Of a leaf.
    Core(usize),
    Bmc,
    Pixie,
}

#[derive(Debug)]
struct Spot {
    role: Role,
    partition: usize,
    dir: PathBuf,
}

/// All agents at work.
#[derive(Debug)]
pub(crate) struct Agents {
    world: Arc<World>,
    spots: Vec<Arc<Spot>>,
    running: Vec<AbortHandle>,
    tasks: JoinSet<()>,
    up: watch::Sender<usize>,
}

impl Agents {
    /// Invites and starts all of them.
    ///
    /// # Errors
    /// A ticket is refused, or a file cannot be written.
    pub(crate) async fn start(
        world: &Arc<World>,
        admin: &Client,
        dir: &Path,
        plan: Plan,
    ) -> Result<Self> {
        let mut agents = Self {
            world: Arc::clone(world),
            spots: Vec::new(),
            running: Vec::new(),
            tasks: JoinSet::new(),
            up: watch::Sender::new(0),
        };
        write_boot_files(dir)?;
        for partition in 0..plan.partitions {
            let leaves = (0..plan.leaves_of(partition)).map(Role::Core);
            for role in leaves.chain([Role::Bmc, Role::Pixie]) {
                let dir = dir
                    .join(partition_name(partition))
                    .join(name(role, partition));
                let spot = Arc::new(Spot {
                    role,
                    partition,
                    dir,
                });
                invite(admin, &spot)
                    .await
                    .with_context(|| name(role, partition))?;
                agents.spots.push(spot);
            }
        }
        for at in 0..agents.spots.len() {
            agents.begin(at);
        }
        Ok(agents)
    }

    /// Waits until every agent has its identity and works.
    pub(crate) async fn all_up(&self) {
        let mut up = self.up.subscribe();
        let all = self.spots.len();
        // The sender is here.
        up.wait_for(|count| *count >= all).await.ok();
    }

    /// Waits until every agent has ended, after the world has.
    pub(crate) async fn all_ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    /// What an agent is called, for people.
    pub(crate) fn name(&self, at: usize) -> String {
        self.spots
            .get(at)
            .map(|spot| name(spot.role, spot.partition))
            .unwrap_or_default()
    }

    /// An agent dies without a word.
    pub(crate) fn kill(&self, at: usize) {
        if let Some(running) = self.running.get(at) {
            running.abort();
        }
    }

    /// It comes back, with what it has on its disk.
    pub(crate) fn begin(&mut self, at: usize) {
        self.kill(at);
        let Some(spot) = self.spots.get(at).cloned() else {
            return;
        };
        let (world, up) = (Arc::clone(&self.world), self.up.clone());
        let running = self.tasks.spawn(async move {
            while !world.stop.is_cancelled() {
                let ended = spot.run(&world, &up).await;
                if let Err(error) = ended {
                    tracing::warn!(
                        agent = name(spot.role, spot.partition),
                        error = format!("{error:#}"),
                        "agent ended"
                    );
                }
                sleep(START_AGAIN).await;
            }
        });
        match self.running.get_mut(at) {
            Some(place) => *place = running,
            None => self.running.push(running),
        }
    }
}

fn name(role: Role, partition: usize) -> String {
    match role {
        Role::Core(leaf) => leaf_name(partition, leaf),
        Role::Bmc => format!("bmc-{}", partition + 1),
        Role::Pixie => format!("pixie-{}", partition + 1),
    }
}

/// Makes the agent's key and gets a ticket for it.
async fn invite(admin: &Client, spot: &Spot) -> Result<()> {
    let key = KeyArgs {
        state_dir: spot.dir.clone(),
    };
    let kind = match spot.role {
        Role::Core(_) => mesh_admin::AgentKind::Core,
        Role::Bmc => mesh_admin::AgentKind::Bmc,
        Role::Pixie => mesh_admin::AgentKind::Pixie,
    };
    let request = JoinServiceCreateRequest {
        kind: kind.into(),
        partition: partition_name(spot.partition),
        id: name(spot.role, spot.partition),
        key_sha256: key.fingerprint()?,
        minutes: 60,
        tpm_ek_sha256: String::new(),
        tpm_ek_certificate: Vec::new(),
        reenrol: false,
    };
    let made = admin.joins().create(request).await?;
    write_private(&spot.ticket(), made.into_inner().secret.as_bytes())
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let options = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut file = options.with_context(|| path.display().to_string())?;
    Ok(file.write_all(bytes)?)
}

fn write_boot_files(dir: &Path) -> Result<()> {
    let assets = dir.join("boot");
    fs::create_dir_all(&assets)?;
    for file in ["snponly.efi", "kernel", "initrd"] {
        fs::write(assets.join(file), vec![0_u8; BOOT_FILE_LEN])?;
    }
    Ok(())
}

impl Spot {
    fn ticket(&self) -> PathBuf {
        self.dir.join("ticket")
    }

    fn args(&self, world: &World) -> AgentArgs {
        AgentArgs {
            control: Vec::new(),
            state_dir: self.dir.clone(),
            ticket_file: Some(self.ticket()),
            offline: false,
            tpm: agents_kit::tpm::TPM_PATH.into(),
            log: LogFormat::default(),
            metrics: None,
            otlp: world.otlp.clone(),
        }
    }

    async fn run(&self, world: &Arc<World>, up: &watch::Sender<usize>) -> Result<()> {
        let kind = match self.role {
            Role::Core(_) => AgentKind::Core,
            Role::Bmc => AgentKind::Bmc,
            Role::Pixie => AgentKind::Pixie,
        };
        let args = self.args(world);
        let agent = args.start(kind).await?;
        let traced = args.send_spans(&agent, kind)?;
        let stop = world.stop.child_token();
        match self.role {
            Role::Core(leaf) => {
                let switch = world
                    .fabrics
                    .get(self.partition)
                    .and_then(|f| f.leaves.get(leaf));
                let switch = switch.context("no such leaf")?.clone();
                up.send_modify(|count| *count += 1);
                agents_core::run(agent, core_config(self.partition, leaf), switch, stop).await;
            }
            Role::Bmc => {
                let config = self.bmc_config(world)?;
                let dir = StateDir::open(&self.dir)?;
                let bmc = BmcAgent::new(agent, config, dir)?;
                up.send_modify(|count| *count += 1);
                bmc.run(stop).await;
            }
            Role::Pixie => {
                let config = self.pixie_config(world)?;
                let control = Arc::new(mesh::MeshControl::new(&agent));
                let pixie = Pixie::spawn(config, control, &self.dir, stop.clone()).await?;
                up.send_modify(|count| *count += 1);
                serve(agent, pixie, stop).await?;
            }
        }
        traced.end().await;
        Ok(())
    }

    /// Written and read as an operator's file is.
    fn bmc_config(&self, world: &World) -> Result<BmcConfig> {
        let (redfish, ipmi) = (world.ports.redfish, world.ports.ipmi);
        let mut text = format!("credentials = \"bmc-login.toml\"\ninterval_s = {BMC_INTERVAL_S}\n");
        let mine = world
            .machines
            .iter()
            .filter(|m| m.plan.partition == self.partition);
        for machine in mine {
            let address = bmc::address(machine);
            text += &format!("[[bmc]]\naddress = \"{address}\"\n");
            text += &if machine.plan.has_ipmi {
                format!("interface = \"ipmi\"\nipmi_port = {ipmi}\n")
            } else {
                format!("interface = \"redfish\"\nredfish_port = {redfish}\nplain_http = true\n")
            };
        }
        let user = partition_name(self.partition);
        let login = format!("[default]\nuser = \"{user}\"\npassword = \"{PASSWORD}\"\n");
        let (config, credentials) = (self.dir.join("bmc.toml"), self.dir.join("bmc-login.toml"));
        if !credentials.exists() {
            write_private(&credentials, login.as_bytes())?;
        }
        fs::write(&config, text)?;
        Ok(BmcConfig::read(&config)?)
    }

    fn pixie_config(&self, world: &World) -> Result<PixieConfig> {
        let address = plan::pixie(self.partition);
        let subnet = ipnet::Ipv4Net::new_assert(address, 16).trunc();
        let [first, last] = plan::range(self.partition);
        let boot = self
            .dir
            .parent()
            .and_then(Path::parent)
            .context("no directory")?
            .join("boot");
        let network = Network {
            address,
            subnet,
            machines: Some(Range::new(first, last, subnet)?),
            bmcs: None,
            bmc_match: BmcMatch::default(),
            router: None,
            dns: Vec::new(),
            ntp: Vec::new(),
            domain: None,
            lease_time_s: LEASE_TIME_S,
            http_port: world.ports.http,
            files: BootFiles::default(),
        };
        Ok(PixieConfig {
            ports: Ports {
                dhcp: world.ports.dhcp,
                tftp: world.ports.tftp,
            },
            http_port: world.ports.http,
            kernel: boot.join("kernel"),
            initrd: boot.join("initrd"),
            assets: boot,
            commandline: String::new(),
            ca_file: None,
            fetch: FetchLimits::default(),
            relay: None,
            self_update: None,
            networks: vec![NetworkConfig {
                interface: "lo".into(),
                mode: Mode::Server,
                router_advertisements: false,
                is_relayed: false,
                network,
            }],
        })
    }
}

async fn serve(agent: agents_kit::Agent, pixie: Pixie, stop: CancellationToken) -> Result<()> {
    let follow = mesh::follow(agent, pixie.desired_sink(), Vec::new(), stop.clone());
    tokio::select! {
        ended = pixie.run() => ended?,
        () = follow => {}
    }
    Ok(())
}

fn core_config(partition: usize, leaf: usize) -> CoreConfig {
    let rack = format!("rack-{}-{}", partition + 1, leaf / 2 + 1);
    let address = IpAddr::V4(plan::vtep(partition, leaf));
    CoreConfig {
        room: format!("room-{}", partition + 1),
        ..CoreConfig::new(rack, address, address)
    }
}
