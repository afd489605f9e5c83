//! A leaf's agent as a process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_kit::StateDir;
use agents_kit::state_dir::StoredSession;
use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use proto_identity::Credential;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::cluster::{POLL, free_ports};
use crate::process::Process;
use crate::procfs;

const PROGRAM: &str = "bench-leaf";
/// Time in which the agent has to serve its metrics.
const START_MAX: Duration = Duration::from_secs(30);
/// Time after which the agent does not repeat its metrics any more, and a little.
const FRESH: Duration = Duration::from_millis(1100);

/// Where a leaf stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeafPlan {
    /// The NIC of each machine that is cabled to it, 0 or 1.
    pub(super) side: u8,
    pub(super) ports: u32,
    /// Where control serves agents.
    pub(super) control: SocketAddr,
}

/// A running agent; killed when dropped.
#[derive(Debug)]
pub(super) struct Leaf {
    process: Process,
    metrics: SocketAddr,
}

impl Leaf {
    /// Writes the files of an agent that has joined, and starts it.
    pub(super) async fn start(dir: &Path, plan: LeafPlan, credential: Credential) -> Result<Self> {
        let home = dir.join(format!("leaf-{}", plan.side));
        let session = StoredSession {
            credential,
            control: vec![plan.control.to_string()],
            ticket_id: String::new(),
        };
        StateDir::open(&home)?.store(&session)?;
        let config = dir.join(format!("leaf-{}.toml", plan.side));
        std::fs::write(&config, config_text(plan.side))?;
        let port = free_ports(1)?.pop().context("no port")?;
        let metrics = SocketAddr::from(([127, 0, 0, 1], port));
        let arguments = [
            program()?.display().to_string(),
            "run".into(),
            format!("--state-dir={}", home.display()),
            format!("--config={}", config.display()),
            format!("--ports={}", plan.ports),
            format!("--side={}", plan.side),
            format!("--metrics={metrics}"),
        ];
        let process = Process::start(&arguments, &home.with_extension("log"))?;
        let mut leaf = Self { process, metrics };
        leaf.wait().await?;
        Ok(leaf)
    }

    async fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START_MAX;
        while let Err(error) = self.scrape().await {
            self.process.check()?;
            if Instant::now() > until {
                return Err(error.context("a leaf does not start"));
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Fails when the agent has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Steps that are in effect so far, from the agent's metrics, which are made anew after
    /// [`FRESH`].
    pub(super) async fn steps(&self) -> Result<u64> {
        sleep(FRESH).await;
        let text = self.scrape().await?;
        let done = r#"metalmesh_agent_steps_total{step="switch_step",outcome="done"} "#;
        let number = text.lines().find_map(|line| line.strip_prefix(done));
        Ok(number.map_or(Ok(0), str::parse)?)
    }

    async fn scrape(&self) -> Result<String> {
        let stream = TcpStream::connect(self.metrics).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        let request = http::Request::get("/metrics")
            .header(http::header::HOST, self.metrics.to_string())
            .body(Empty::<Bytes>::new())?;
        let answer = async {
            let answer = sender.send_request(request).await?;
            anyhow::Ok(answer.into_body().collect().await?.to_bytes())
        };
        let body = tokio::select! {
            body = answer => body?,
            ended = connection => {
                ended?;
                anyhow::bail!("the agent's metrics end");
            }
        };
        Ok(String::from_utf8(body.to_vec())?)
    }

    /// CPU time so far, milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    pub(super) fn cpu_ms(&self) -> Result<f64> {
        Ok(procfs::cpu_us(self.process.pid())? as f64 / 1e3)
    }

    /// Resident memory, MiB.
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    pub(super) fn rss_mib(&self) -> Result<f64> {
        Ok(procfs::rss_kib(self.process.pid())? as f64 / 1024.0)
    }
}

/// Beside this program: it is a binary of the same crate.
fn program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(PROGRAM))
}

fn config_text(side: u8) -> String {
    format!(
        "rack = \"rack-0\"\nroom = \"room-1\"\nmanagement_ip = \"10.90.0.{side}\"\n\
         vtep = \"10.91.0.{side}\"\n[bgp]\nasn = 420000000{side}\nunderlay = [\"10.91.0.0/24\"]\n"
    )
}
