//! The product beside Ironic: `metalmeshd` over a data directory that was filled before.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use uuid::Uuid;

use super::http::{Call, Client};
use super::seed::{self, HALL, IMAGE, PROJECTS, SIZE, YARD};
use crate::cluster::{POLL, free_ports};
use crate::process::Process;

const LIST: &str = "/metalstack.admin.v2.MachineService/List";
const GET: &str = "/metalstack.admin.v2.MachineService/Get";
const REGISTER: &str = "/metalstack.infra.v2.BootService/Register";
const ALLOCATE: &str = "/metalstack.api.v2.MachineService/Create";
/// How long the start may take before the bench gives up.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long filling may take.
const FILL_TIMEOUT: Duration = Duration::from_secs(600);

/// Tokens as `Authorization` takes them.
#[derive(Clone, Debug)]
struct Tokens {
    admin: HeaderValue,
    machine: HeaderValue,
    tenant: HeaderValue,
}

/// One node that serves.
#[derive(Debug)]
pub(crate) struct Ours {
    process: Process,
    asks: Asks,
}

/// How it is asked.
#[derive(Clone, Debug)]
pub(crate) struct Asks {
    pub(crate) address: SocketAddr,
    pub(crate) machines: u32,
    networks: u32,
    tokens: Tokens,
}

impl Ours {
    /// Fills a directory by the product's own commands, then starts the product on it.
    pub(crate) async fn start(
        program: &Path,
        dir: PathBuf,
        machines: u32,
        networks: u32,
    ) -> Result<Self> {
        std::fs::create_dir(&dir)?;
        fill(&dir, machines, networks, None).await?;
        let tokens = seed::tokens(&dir)?;
        let [api, mesh] = free_ports(2)?[..] else {
            anyhow::bail!("no ports");
        };
        let address = SocketAddr::from(([127, 0, 0, 1], api));
        let arguments = [
            program.display().to_string(),
            format!("--data-dir={}", dir.display()),
            format!("--api-listen={address}"),
            format!("--mesh-listen=127.0.0.1:{mesh}"),
        ];
        let process = Process::start(&arguments, &dir.with_extension("log"))?;
        let [admin, machine, tenant] = tokens.map(|token| bearer(&token));
        let tokens = Tokens {
            admin: admin?,
            machine: machine?,
            tenant: tenant?,
        };
        let asks = Asks {
            address,
            machines,
            networks,
            tokens,
        };
        let mut ours = Self { process, asks };
        ours.wait().await?;
        Ok(ours)
    }

    async fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START_TIMEOUT;
        let mut client = Client::new(self.asks.address);
        while client.call(&self.asks.get(1)).await.is_err() {
            self.process.check()?;
            ensure!(
                Instant::now() < until,
                "metalmeshd does not serve in time; its last words: {:?}",
                client.call(&self.asks.get(1)).await.err()
            );
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    pub(crate) fn asks(&self) -> &Asks {
        &self.asks
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Fills a directory in a process of its own, whose memory ends with it. `class` makes nodes of
/// Ironic's API of the machines.
pub(crate) async fn fill(
    dir: &Path,
    machines: u32,
    networks: u32,
    class: Option<&str>,
) -> Result<()> {
    let this = std::env::current_exe()?.display().to_string();
    let mut arguments = vec![
        this,
        "fill".into(),
        format!("--dir={}", dir.display()),
        format!("--machines={machines}"),
        format!("--networks={networks}"),
    ];
    arguments.extend(class.map(|class| format!("--class={class}")));
    let mut process = Process::start(&arguments, &dir.with_extension("log"))?;
    let ended = tokio::time::timeout(FILL_TIMEOUT, process.ended());
    ended.await.context("the state was not filled in time")?
}

fn bearer(token: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(value)
}

impl Asks {
    fn call(path: &str, token: &HeaderValue, body: &Value) -> Call {
        Call {
            method: Method::POST,
            path: path.to_owned(),
            headers: vec![(AUTHORIZATION, token.clone())],
            body: body.to_string().into(),
        }
    }

    /// The machines of one room, 1,000 where there are as many.
    pub(crate) fn list(&self) -> Call {
        let body = json!({"query": {"partition": HALL, "room": seed::room(1)}});
        Self::call(LIST, &self.tokens.admin, &body)
    }

    pub(crate) fn get(&self, number: u32) -> Call {
        let body = json!({"uuid": machine(number % self.machines + 1)});
        Self::call(GET, &self.tokens.admin, &body)
    }

    /// A machine that nobody knew comes up: hammer registers it with all that it found.
    pub(crate) fn create(&self, number: u32) -> Call {
        let nic = |name: &str, high: u8, leaf: &str| {
            let [a, b, c, d] = number.to_be_bytes();
            let mac = format!("02:{high:02x}:{a:02x}:{b:02x}:{c:02x}:{d:02x}");
            // A port of its own: machines that claim one port are judged again together.
            let port = format!("swp{number}");
            let leaf = json!({"name": port, "hostname": leaf, "identifier": port});
            json!({"name": name, "mac": mac, "identifier": mac, "vendor": "Bench", "model": "25G",
                   "speed": "25000", "neighbors": [leaf]})
        };
        let cpu = json!({"vendor": "Bench", "model": "32 cores", "cores": 32, "threads": 64});
        let disk = |name: &str| json!({"name": name, "size": (960u64 << 30).to_string()});
        let body = json!({
            "uuid": Uuid::now_v7(), "partition": YARD, "metalHammerVersion": "1.0.0",
            "hardware": {"memory": (512u64 << 30).to_string(), "cpus": [cpu, cpu],
                "disks": [disk("/dev/nvme0n1"), disk("/dev/nvme1n1")],
                "nics": [nic("eth0", 1, "leaf-0"), nic("eth1", 2, "leaf-1")]},
            "bios": {"version": "2.4", "vendor": "Bench", "date": "01/02/2026"},
        });
        Self::call(REGISTER, &self.tokens.machine, &body)
    }

    /// The answer comes when the machine is the project's.
    pub(crate) fn allocate(&self, number: u32) -> Call {
        let project = number % PROJECTS.min(self.networks);
        let of_project = self.networks / PROJECTS;
        let nth = (number / PROJECTS).checked_rem(of_project).unwrap_or(0);
        let network = project + nth * PROJECTS;
        let body = json!({
            "project": seed::project(project).to_string(), "name": format!("machine-{number}"),
            "partition": HALL, "size": SIZE, "image": IMAGE,
            "networks": [{"network": seed::network(network)}],
            "filesystemLayout": "default",
            "allocationType": "MACHINE_ALLOCATION_TYPE_MACHINE",
        });
        Self::call(ALLOCATE, &self.tokens.tenant, &body)
    }
}

fn machine(number: u32) -> String {
    Uuid::from_u128(number.into()).to_string()
}
