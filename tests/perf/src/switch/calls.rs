//! From an API call until control has the verified reports of both leaves.
//!
//! The bench is the machines' installer, by the API for agents of the published stack, and the
//! agent of their BMCs, which answers at once. Control's own word ends each measurement: a phase
//! that it enters when both leaves have reported the machine's ports where they belong.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use proto_identity::{Roots, tls};
use proto_link::{ALPN, LinkStatus, MeshClient, MeshClientConfig};
use proto_mesh::{BmcAction, BmcDesiredRequest, BmcOrder, BmcOrderDone, BmcServiceClient};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Bench;
use super::fill::{bmc_credential, leaf_credential};
use super::leaf::{Leaf, LeafPlan};
use crate::api::http::{Call, Client};
use crate::api::seed::{self, HALL, IMAGE, PROJECTS, SIZE};
use crate::cluster::free_ports;
use crate::disk;
use crate::link::round_trips;
use crate::process::Process;
use crate::sample::Latencies;

const CREATE: &str = "/metalstack.api.v2.MachineService/Create";
const DELETE: &str = "/metalstack.api.v2.MachineService/Delete";
const GET: &str = "/metalstack.admin.v2.MachineService/Get";
const INSTALLED: &str = "/metalstack.infra.v2.BootService/InstallationSucceeded";
const EVENT: &str = "/metalstack.infra.v2.EventService/Send";
/// Label with a machine's phase.
const PHASE: &str = "metalmesh.dev/phase";
const FILL_MAX: Duration = Duration::from_secs(300);
const START_MAX: Duration = Duration::from_secs(60);
/// Time for a machine to enter a phase.
const PHASE_MAX: Duration = Duration::from_secs(60);
/// Pause between two looks at a machine's phase; what is measured is this longer at most.
const POLL: Duration = Duration::from_millis(2);
/// Time over which each floor is measured.
const FLOOR: Duration = Duration::from_secs(1);

/// Measures.
pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    floors(bench).await?;
    let dir = bench.dir.join("control");
    std::fs::create_dir(&dir)?;
    let machines = bench.args.machines;
    bench.progress(&format!("two agents join, {machines} machines register"));
    fill(&dir, machines).await?;
    let [api, mesh] = free_ports(2)?[..] else {
        anyhow::bail!("no ports");
    };
    let [api, mesh] = [api, mesh].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let arguments = [
        bench.args.metalmeshd.display().to_string(),
        format!("--data-dir={}", dir.display()),
        format!("--api-listen={api}"),
        format!("--mesh-listen={mesh}"),
    ];
    let mut process = Process::start(&arguments, &dir.with_extension("log"))?;
    let mut leaves = Vec::new();
    for side in [0, 1] {
        let plan = LeafPlan {
            side,
            ports: machines,
            control: mesh,
        };
        leaves.push(Leaf::start(&bench.dir, plan, leaf_credential(&dir, side)?).await?);
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(bmcs(BmcServiceClient::from(session(&dir, mesh)?)));
    let mut site = Site::new(api, &dir)?;
    let measured = lives(bench, &mut site).await;
    process.check()?;
    for leaf in &mut leaves {
        leaf.check()?;
    }
    measured
}

/// Bare operations on the way of every call.
async fn floors(bench: &mut Bench) -> Result<()> {
    let dir = bench.dir.clone();
    let mut syncs = tokio::task::spawn_blocking(move || disk::syncs(&dir, FLOOR)).await??;
    let sync = syncs.quantile_us(0.5) / 1e3;
    let datagram = round_trips(FLOOR).await?.quantile_us(0.5) / 1e3;
    bench.report.add("sync_p50_ms", sync);
    bench.report.add("datagram_p50_ms", datagram);
    bench.progress(&format!(
        "fdatasync {sync:.2} ms, datagram {datagram:.3} ms"
    ));
    Ok(())
}

async fn fill(dir: &Path, machines: u32) -> Result<()> {
    let arguments = [
        std::env::current_exe()?.display().to_string(),
        "switch-fill".into(),
        format!("--dir={}", dir.display()),
        format!("--machines={machines}"),
    ];
    let mut process = Process::start(&arguments, &dir.with_extension("fill.log"))?;
    let filled = timeout(FILL_MAX, process.ended()).await;
    filled
        .context("filling takes too long")?
        .context("cannot fill the directory")
}

/// A session of the agent of all BMCs.
fn session(dir: &Path, mesh: SocketAddr) -> Result<MeshClient> {
    let credential = bmc_credential(dir)?;
    let roots = Roots::Certificates(credential.roots.clone());
    let config = MeshClientConfig::new(
        vec![mesh.to_string()],
        tls::client_config(roots, Some(&credential), ALPN)?,
    );
    Ok(MeshClient::new(config)?)
}

/// Answers each order at once, for ever.
async fn bmcs(client: BmcServiceClient) {
    loop {
        let followed: Result<(), LinkStatus> = async {
            let mut stream = client.desired(BmcDesiredRequest::default()).await?;
            while let Some(desired) = stream.message().await? {
                for order in desired.orders {
                    client.order_done(done(order)).await?;
                }
            }
            Ok(())
        }
        .await;
        // Control is not up yet: the stream is opened again.
        drop(followed);
        sleep(POLL).await;
    }
}

fn done(order: BmcOrder) -> BmcOrderDone {
    let power = match BmcAction::try_from(order.action) {
        Ok(BmcAction::PowerOff) => "off",
        _ => "on",
    };
    BmcOrderDone {
        id: order.id,
        power_state: power.into(),
        ..BmcOrderDone::default()
    }
}

/// Hands over and releases machines, one after the other.
async fn lives(bench: &mut Bench, site: &mut Site) -> Result<()> {
    site.serves().await?;
    let mut times = Times::default();
    for number in 0..bench.args.machines {
        let (machine, project) = site.install(number).await?;
        times
            .hand_overs
            .add(site.hand_over(&machine, &mut times.calls).await?);
        let released = site.release(&machine, &project, &mut times.calls).await?;
        times.releases.add(released);
    }
    let call = times.calls.quantile_us(0.5) / 1e3;
    bench.report.add("call_p50_ms", call);
    let Times {
        hand_overs,
        releases,
        ..
    } = &mut times;
    for (names, took) in [
        (["hand_over_p50_ms", "hand_over_p99_ms"], hand_overs),
        (["release_p50_ms", "release_p99_ms"], releases),
    ] {
        let [p50, p99] = [0.5, 0.99].map(|share| took.quantile_us(share) / 1e3);
        bench.progress(&format!("{}: p50 {p50:.1} ms, p99 {p99:.1} ms", names[1]));
        bench.report.add(names[0], p50);
        bench.report.add(names[1], p99);
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Times {
    calls: Latencies,
    hand_overs: Latencies,
    releases: Latencies,
}

/// The product's node, as its users see it.
struct Site {
    client: Client,
    admin: HeaderValue,
    agents: HeaderValue,
    tenant: HeaderValue,
}

impl Site {
    fn new(api: SocketAddr, dir: &Path) -> Result<Self> {
        let [admin, agents, tenant] = seed::tokens(dir)?.map(|token| bearer(&token));
        Ok(Self {
            client: Client::new(api),
            admin: admin?,
            agents: agents?,
            tenant: tenant?,
        })
    }

    /// Waits until control answers.
    async fn serves(&mut self) -> Result<()> {
        let until = Instant::now() + START_MAX;
        let list = "/metalstack.admin.v2.SwitchService/List";
        let call = call(list, &self.admin, &json!({}));
        while let Err(error) = self.client.call(&call).await {
            ensure!(Instant::now() < until, "control does not serve: {error:#}");
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Allocates a machine and reports it as installed. Its id, and its project's.
    async fn install(&mut self, number: u32) -> Result<(String, String)> {
        let project = seed::project(number % PROJECTS).to_string();
        let body = json!({
            "project": project, "name": format!("machine-{number}"), "partition": HALL,
            "size": SIZE, "image": IMAGE, "filesystemLayout": "default",
            "networks": [{"network": seed::network(number % PROJECTS)}],
            "allocationType": "MACHINE_ALLOCATION_TYPE_MACHINE",
        });
        let create = call(CREATE, &self.tenant, &body);
        // No machine is free before both leaves have reported what they hear.
        let until = Instant::now() + PHASE_MAX;
        let made = loop {
            match self.client.json(&create).await {
                Ok(made) => break made,
                Err(error) => ensure!(Instant::now() < until, "no allocation: {error:#}"),
            }
            sleep(POLL).await;
        };
        let uuid = made["machine"]["uuid"].as_str().context("no uuid")?;
        let body = json!({"uuid": uuid, "consolePassword": "simulated"});
        self.client
            .call(&call(INSTALLED, &self.agents, &body))
            .await?;
        // The order to boot from disk has ended.
        self.enters(uuid, &["rebooting"]).await?;
        Ok((uuid.to_owned(), project))
    }

    /// The installed system phones home: its ports become the tenant's, and it runs once both have.
    async fn hand_over(&mut self, uuid: &str, calls: &mut Latencies) -> Result<Duration> {
        let event = json!({"event": "MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME"});
        let call = call(EVENT, &self.agents, &json!({"events": {uuid: event}}));
        let began = Instant::now();
        let (answer, took) = self.client.call(&call).await?;
        calls.add(took);
        let answer: Value = serde_json::from_slice(&answer)?;
        ensure!(
            answer["failed"].as_array().is_none_or(Vec::is_empty),
            "{answer}"
        );
        self.enters(uuid, &["running"]).await?;
        Ok(began.elapsed())
    }

    /// The tenant frees the machine: it is off, and its ports are nobody's on both leaves.
    async fn release(
        &mut self,
        uuid: &str,
        project: &str,
        calls: &mut Latencies,
    ) -> Result<Duration> {
        let body = json!({"uuid": uuid, "project": project});
        let call = call(DELETE, &self.tenant, &body);
        let began = Instant::now();
        let (_, took) = self.client.call(&call).await?;
        calls.add(took);
        self.enters(uuid, &["reclaim-boot", "reclaim-register"])
            .await?;
        Ok(began.elapsed())
    }

    /// Waits until a machine is in one of these phases.
    async fn enters(&mut self, uuid: &str, phases: &[&str]) -> Result<()> {
        let get = call(GET, &self.admin, &json!({"uuid": uuid}));
        let until = Instant::now() + PHASE_MAX;
        loop {
            let shown = self.client.json(&get).await?;
            let machine = &shown["machine"];
            let phase = &machine["meta"]["labels"]["labels"][PHASE];
            if phase.as_str().is_some_and(|phase| phases.contains(&phase)) {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "{uuid} is not in {phases:?}: {machine}"
            );
            sleep(POLL).await;
        }
    }
}

fn call(path: &str, token: &HeaderValue, body: &Value) -> Call {
    Call {
        method: Method::POST,
        path: path.to_owned(),
        headers: vec![(AUTHORIZATION, token.clone())],
        body: body.to_string().into(),
    }
}

fn bearer(token: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(value)
}
