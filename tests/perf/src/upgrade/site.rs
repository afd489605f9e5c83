//! Three nodes as processes, and what an operator does with them.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::api::http::{Call, Client};
use crate::cluster::{NODES, POLL, free_ports};
use crate::process::Process;

const STATUS: &str = "/metalmesh.admin.v1.ClusterService/Status";
const INVITE: &str = "/metalmesh.admin.v1.ClusterService/Invite";
const PROMOTE: &str = "/metalmesh.admin.v1.ClusterService/Promote";
const TRANSFER: &str = "/metalmesh.admin.v1.ClusterService/TransferLeader";
/// How long a node may take to start, to catch up, or to take over.
const PATIENCE: Duration = Duration::from_secs(60);
/// Log entries that a node may be behind and still count as caught up.
const CAUGHT_UP: u64 = 100;

/// A node: its files, its addresses, and the process while it runs.
struct Member {
    dir: PathBuf,
    api: SocketAddr,
    process: Option<Process>,
}

/// Three voters.
pub(super) struct Site {
    members: Vec<Member>,
    token: String,
}

impl Site {
    /// Starts the nodes and waits until all vote.
    pub(super) async fn form(program: &Path, dir: &Path) -> Result<Self> {
        let ports = free_ports(3 * NODES)?;
        let mut members = Vec::new();
        for (at, ports) in ports.chunks(3).enumerate() {
            let [api, mesh, peers] = *ports else {
                bail!("no ports");
            };
            members.push(Member::new(
                dir.join(format!("node{}", at + 1)),
                at,
                [api, mesh, peers],
            )?);
        }
        let mut site = Self {
            members,
            token: String::new(),
        };
        let token = dir.join("admin-token");
        site.start(0, program, &[format!("--token-file={}", token.display())])?;
        site.wait_logged(0, "ready ").await?;
        site.token = fs::read_to_string(&token)?.trim().to_owned();
        for at in 1..NODES {
            site.join(at, program).await?;
        }
        Ok(site)
    }

    /// Positions of the nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        0..self.members.len()
    }

    /// Where clients are served.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.api).collect()
    }

    /// The admin's token.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// The feature level that the cluster uses.
    pub(super) async fn feature_level(&self) -> Result<u64> {
        let status = self.status().await?;
        status["featureLevel"].as_u64().context("no feature level")
    }

    /// Position of the leader.
    pub(super) async fn leader(&self) -> Result<usize> {
        let leader = number(&self.status().await?["leader"]);
        usize::try_from(leader)?.checked_sub(1).context("no leader")
    }

    /// Makes a node the leader.
    pub(super) async fn lead(&self, at: usize) -> Result<()> {
        self.ask(at, TRANSFER, &json!({ "id": (at + 1).to_string() }))
            .await?;
        Ok(())
    }

    /// Stops a node in good order, starts another program on its data, and waits until it has caught
    /// up.
    pub(super) async fn restart(&mut self, at: usize, program: &Path) -> Result<()> {
        let mut process = self.members[at].process.take().context("it is away")?;
        kill(
            Pid::from_raw(i32::try_from(process.pid())?),
            Signal::SIGTERM,
        )?;
        process.ended().await?;
        self.start(at, program, &[])?;
        let until = Instant::now() + PATIENCE;
        let id = u64::try_from(at)? + 1;
        loop {
            self.check(at)?;
            let status = self.ask(at, STATUS, &json!({})).await.unwrap_or_default();
            let nodes = status["nodes"].as_array();
            let mut nodes = nodes.into_iter().flatten();
            let node = nodes.find(|node| number(&node["id"]) == id);
            if node.is_some_and(is_caught_up) {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "node {id} does not come back: {status}"
            );
            tokio::time::sleep(POLL).await;
        }
    }

    fn start(&mut self, at: usize, program: &Path, more: &[String]) -> Result<()> {
        let member = &mut self.members[at];
        let mut arguments = vec![
            program.display().to_string(),
            format!("--config={}", member.dir.join("node.toml").display()),
        ];
        arguments.extend_from_slice(more);
        member.process = Some(Process::start(&arguments, &member.log())?);
        Ok(())
    }

    /// Joins a node and gives it a vote.
    async fn join(&mut self, at: usize, program: &Path) -> Result<()> {
        self.start(at, program, &[])?;
        let line = self.wait_logged(at, "waiting key=").await?;
        let key = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("key="));
        let invite = json!({ "keySha256": key.context("no key")?, "minutes": 15 });
        let invited = self.ask(0, INVITE, &invite).await?;
        let id = number(&invited["node"]["id"]);
        ensure!(
            usize::try_from(id)? == at + 1,
            "node {} was given the number {id}",
            at + 1
        );
        let secret = invited["secret"].as_str().context("no ticket")?;
        write_private(&self.members[at].dir.join("ticket"), secret)?;
        self.wait_logged(at, "ready ").await?;
        let until = Instant::now() + PATIENCE;
        while let Err(error) = self.ask(0, PROMOTE, &json!({ "id": id.to_string() })).await {
            ensure!(Instant::now() < until, "node {id} gets no vote: {error:#}");
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits for a line of a node's log.
    async fn wait_logged(&mut self, at: usize, text: &str) -> Result<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.check(at)?;
            let log = fs::read_to_string(self.members[at].log()).unwrap_or_default();
            if let Some(line) = log.lines().find(|line| line.contains(text)) {
                return Ok(line.to_owned());
            }
            ensure!(
                Instant::now() < until,
                "node {} never said {text:?}",
                at + 1
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// Fails when a node has ended.
    fn check(&mut self, at: usize) -> Result<()> {
        let process = self.members[at].process.as_mut();
        process.context("it is away")?.check()
    }

    /// The cluster, as its leader sees it.
    async fn status(&self) -> Result<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.ask(0, STATUS, &json!({})).await?;
            if number(&status["leader"]) > 0 {
                return Ok(status);
            }
            ensure!(Instant::now() < until, "no node leads: {status}");
            tokio::time::sleep(POLL).await;
        }
    }

    async fn ask(&self, at: usize, path: &str, body: &Value) -> Result<Value> {
        let mut client = Client::new(self.members[at].api);
        client.json(&call(path, &self.token, body)?).await
    }
}

impl Member {
    /// Writes the configuration of a node. The first one forms the cluster, others join it.
    fn new(dir: PathBuf, at: usize, [api, mesh, peers]: [u16; 3]) -> Result<Self> {
        fs::create_dir(&dir)?;
        let config = format!(
            "data_dir = {:?}\n[api]\nlisten = \"127.0.0.1:{api}\"\n\
             [mesh]\nlisten = \"127.0.0.1:{mesh}\"\n\
             [peers]\nlisten = \"127.0.0.1:{peers}\"\njoin = {}\nticket = {:?}\n",
            dir.join("data"),
            at > 0,
            dir.join("ticket"),
        );
        fs::write(dir.join("node.toml"), config)?;
        Ok(Self {
            dir,
            api: SocketAddr::from(([127, 0, 0, 1], api)),
            process: None,
        })
    }

    fn log(&self) -> PathBuf {
        self.dir.join("log")
    }
}

/// A call of the admin.
pub(super) fn call(path: &str, token: &str, body: &Value) -> Result<Call> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))?;
    bearer.set_sensitive(true);
    Ok(Call {
        method: Method::POST,
        path: path.to_owned(),
        headers: vec![(AUTHORIZATION, bearer)],
        body: body.to_string().into(),
    })
}

/// A 64-bit number, which JSON of protobuf writes as text and leaves out if it is 0.
fn number(value: &Value) -> u64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| value.as_u64()).unwrap_or(0)
}

/// `true` if the leader hears a node that has almost all of the log. Only the leader's word has the
/// number, and it is there also when it is 0.
fn is_caught_up(node: &Value) -> bool {
    node.get("heardAt").is_some()
        && node
            .get("behind")
            .is_some_and(|behind| number(behind) <= CAUGHT_UP)
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
