//! Ten thousand agents of one `metalmeshd`: what they cost it, how long an intent takes to reach
//! one of them, and how they come back after it was killed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use proto_identity::{Roots, tls};
use proto_link::{ALPN, LinkStatus, MeshClient, MeshClientConfig};
use proto_mesh::{SwitchDesired, SwitchDesiredRequest, SwitchReport, SwitchServiceClient};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Bench;
use super::ask::Sockets;
use super::fill::{credential, leaf};
use super::serve::Link;
use crate::api::http::{Call, Client};
use crate::api::seed;
use crate::cluster::{POLL, free_ports};
use crate::process::Process;
use crate::procfs;
use crate::sample::Latencies;

const PORT: &str = "/metalstack.admin.v2.SwitchService/Port";
/// As often do core agents report when nothing changes.
const REPORT: Duration = Duration::from_secs(10);
/// Pause of an agent before it opens a stream again.
const AGAIN: Duration = Duration::from_millis(50);
/// All agents must be there within this.
const CONNECT_MAX: Duration = Duration::from_secs(300);
const FILL_MAX: Duration = Duration::from_secs(900);
/// Intents that are followed to their agents.
const INTENTS: u32 = 300;
const INTENT_MAX: Duration = Duration::from_secs(30);

/// What is known of all agents.
#[derive(Debug)]
struct Seen {
    began: Instant,
    /// Agents that have heard what they shall do, since the last restart.
    there: AtomicU32,
    /// Reports that somebody waits for, and those that were answered.
    asked: AtomicU32,
    answered: AtomicU32,
    /// Restarts so far.
    epoch: watch::Sender<u32>,
}

/// One agent, as the bench sees it.
#[derive(Debug)]
struct Agent {
    /// The newest that it was told, and when.
    told: watch::Receiver<Option<(SwitchDesired, Instant)>>,
    /// Microseconds from the last restart to its first word after that.
    back_us: Arc<AtomicU64>,
}

/// The product's node.
struct Node {
    arguments: Vec<String>,
    log: PathBuf,
    api: SocketAddr,
    mesh: SocketAddr,
}

/// Measures.
pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let count = bench.args.sessions;
    bench.progress(&format!("{count} agents join, {count} machines register"));
    let dir = bench.dir.join("control");
    std::fs::create_dir(&dir)?;
    fill(&dir, count).await?;
    let [token, _, _] = seed::tokens(&dir)?;
    let node = Node::at(bench, &dir)?;
    let mut process = node.start()?;
    let seen = Arc::new(Seen {
        began: Instant::now(),
        there: AtomicU32::new(0),
        asked: AtomicU32::new(0),
        answered: AtomicU32::new(0),
        epoch: watch::Sender::new(0),
    });
    let mut tasks = JoinSet::new();
    let mut agents = Vec::new();
    let sockets = Sockets::bind()?;
    let began = Instant::now();
    for number in 0..count {
        let credential = credential(&dir, &leaf(number))?;
        let roots = Roots::Certificates(credential.roots.clone());
        let config = MeshClientConfig::new(
            vec![node.mesh.to_string()],
            tls::client_config(roots, Some(&credential), ALPN)?,
        );
        let mesh = MeshClient::on(config, sockets.of(number as usize))?;
        agents.push(Agent::start(&mut tasks, &seen, mesh, number, count));
    }
    everybody(&mut process, &seen, count).await?;
    bench.progress(&format!(
        "all there after {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    // A round of reports, so that nothing is left of the beginning.
    sleep(REPORT).await;
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let rss = procfs::rss_kib(process.pid())? as f64 / 1024.0;
    bench.report.add(Link::Ours, "agents_rss_mib", rss);
    let cpu = procfs::run_ns(process.pid())?;
    sleep(REPORT).await;
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let idle = (procfs::run_ns(process.pid())? - cpu) as f64 / REPORT.as_secs_f64() / 1e7;
    bench.report.add(Link::Ours, "agents_cpu_percent", idle);
    bench.progress(&format!("metalmeshd: {rss:.0} MiB, {idle:.0} % of a core"));
    intents(bench, &node, &token, &agents).await?;
    restart(bench, &node, process, &seen, &agents).await
}

async fn fill(dir: &std::path::Path, count: u32) -> Result<()> {
    let arguments = [
        std::env::current_exe()?.display().to_string(),
        "fill".into(),
        format!("--dir={}", dir.display()),
        format!("--machines={count}"),
        format!("--agents={count}"),
        "--networks=20".into(),
    ];
    let mut process = Process::start(&arguments, &dir.with_extension("fill.log"))?;
    let filled = timeout(FILL_MAX, process.ended()).await;
    filled
        .context("filling takes too long")?
        .context("cannot fill the directory")
}

impl Node {
    fn at(bench: &Bench, dir: &std::path::Path) -> Result<Self> {
        let [api, mesh] = free_ports(2)?[..] else {
            anyhow::bail!("no ports");
        };
        let [api, mesh] = [api, mesh].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let arguments = vec![
            bench.args.metalmeshd.display().to_string(),
            format!("--data-dir={}", dir.display()),
            format!("--api-listen={api}"),
            format!("--mesh-listen={mesh}"),
        ];
        Ok(Self {
            arguments,
            log: dir.with_extension("log"),
            api,
            mesh,
        })
    }

    fn start(&self) -> Result<Process> {
        Process::start(&self.arguments, &self.log)
    }
}

impl Seen {
    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Agent {
    fn start(
        tasks: &mut JoinSet<()>,
        seen: &Arc<Seen>,
        mesh: MeshClient,
        number: u32,
        count: u32,
    ) -> Self {
        let (told, receiver) = watch::channel(None);
        let back_us = Arc::new(AtomicU64::new(0));
        let client = SwitchServiceClient::from(mesh);
        tasks.spawn(reports(
            client.clone(),
            Arc::clone(seen),
            REPORT * number / count,
        ));
        tasks.spawn(desired(
            client,
            Arc::clone(seen),
            told,
            Arc::clone(&back_us),
        ));
        Self {
            told: receiver,
            back_us,
        }
    }
}

/// Follows what the switch shall do, for ever.
async fn desired(
    client: SwitchServiceClient,
    seen: Arc<Seen>,
    told: watch::Sender<Option<(SwitchDesired, Instant)>>,
    back_us: Arc<AtomicU64>,
) {
    let mut epoch = None;
    loop {
        let followed: Result<(), LinkStatus> = async {
            let mut stream = client.desired(SwitchDesiredRequest::default()).await?;
            while let Some(desired) = stream.message().await? {
                told.send_replace(Some((desired, Instant::now())));
                let now = *seen.epoch.borrow();
                if epoch.replace(now) != Some(now) {
                    back_us.store(seen.now_us(), Ordering::SeqCst);
                    seen.there.fetch_add(1, Ordering::SeqCst);
                }
            }
            Ok(())
        }
        .await;
        // Whatever ended it, it is opened again.
        drop(followed);
        sleep(AGAIN).await;
    }
}

/// Reports each ten seconds, and at once when control is killed; repeats until it is answered.
async fn reports(client: SwitchServiceClient, seen: Arc<Seen>, first: Duration) {
    let mut epoch = seen.epoch.subscribe();
    let mut pause = first;
    loop {
        let killed = timeout(pause, epoch.changed()).await.is_ok();
        pause = REPORT;
        if killed {
            seen.asked.fetch_add(1, Ordering::SeqCst);
        }
        while client.report(SwitchReport::default()).await.is_err() {
            sleep(AGAIN).await;
        }
        if killed {
            seen.answered.fetch_add(1, Ordering::SeqCst);
        }
    }
}

async fn everybody(process: &mut Process, seen: &Seen, count: u32) -> Result<()> {
    let until = Instant::now() + CONNECT_MAX;
    while seen.there.load(Ordering::SeqCst) < count {
        process.check()?;
        let there = seen.there.load(Ordering::SeqCst);
        ensure!(
            Instant::now() < until,
            "{there} of {count} agents are there"
        );
        sleep(POLL).await;
    }
    Ok(())
}

/// An administrator switches ports off and on; from the call to the agent's ear.
async fn intents(bench: &mut Bench, node: &Node, token: &str, agents: &[Agent]) -> Result<()> {
    let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))?;
    bearer.set_sensitive(true);
    let mut client = Client::new(node.api);
    let mut took = Latencies::default();
    let step = (agents.len() / INTENTS as usize).max(1);
    for number in (0..agents.len()).step_by(step) {
        let body = json!({
            "id": leaf(u32::try_from(number)?), "nicName": "swp0",
            "status": "SWITCH_PORT_STATUS_DOWN",
        });
        let call = Call {
            method: Method::POST,
            path: PORT.to_owned(),
            headers: vec![(AUTHORIZATION, bearer.clone())],
            body: body.to_string().into(),
        };
        let mut told = agents[number].told.clone();
        let began = Instant::now();
        client.call(&call).await?;
        let heard = told.wait_for(|it| {
            let ports = it.iter().flat_map(|(desired, _)| &desired.ports);
            ports
                .into_iter()
                .any(|port| port.name == "swp0" && !port.admin_up)
        });
        let heard = timeout(INTENT_MAX, heard).await;
        let heard = heard.with_context(|| format!("{} is not told", leaf(0)))??;
        if let Some((_, at)) = &*heard {
            took.add(at.duration_since(began));
        }
    }
    let (p50, p99) = (took.quantile_us(0.5) / 1e3, took.quantile_us(0.99) / 1e3);
    bench.progress(&format!(
        "intent to agent: p50 {p50:.1} ms, p99 {p99:.1} ms"
    ));
    bench.report.add(Link::Ours, "intent_p50_ms", p50);
    bench.report.add(Link::Ours, "intent_p99_ms", p99);
    Ok(())
}

/// Kills control, starts it again, and waits for all.
async fn restart(
    bench: &mut Bench,
    node: &Node,
    process: Process,
    seen: &Seen,
    agents: &[Agent],
) -> Result<()> {
    let count = u32::try_from(agents.len())?;
    process.kill().await?;
    seen.there.store(0, Ordering::SeqCst);
    let killed = seen.now_us();
    seen.epoch.send_modify(|epoch| *epoch += 1);
    let mut process = node.start()?;
    everybody(&mut process, seen, count).await?;
    let mut took = Latencies::default();
    let (mut sum, mut last) = (0, 0);
    for agent in agents {
        let back = agent.back_us.load(Ordering::SeqCst).saturating_sub(killed);
        took.add(Duration::from_micros(back));
        sum += back;
        last = last.max(back);
    }
    let until = Instant::now() + CONNECT_MAX;
    while seen.answered.load(Ordering::SeqCst) < count && Instant::now() < until {
        sleep(POLL).await;
    }
    let lost = count - seen.answered.load(Ordering::SeqCst).min(count);
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let (last, mean) = (last as f64 / 1e6, sum as f64 / f64::from(count) / 1e6);
    let p99 = took.quantile_us(0.99) / 1e6;
    bench.progress(&format!(
        "after a restart all are back in {last:.1} s; mean {mean:.1} s, p99 {p99:.1} s, {lost} \
         reports lost"
    ));
    for (name, number) in [
        ("back_s", last),
        ("back_mean_s", mean),
        ("back_p99_to_mean", p99 / mean),
        ("lost", f64::from(lost)),
    ] {
        bench.report.add(Link::Ours, name, number);
    }
    Ok(())
}
