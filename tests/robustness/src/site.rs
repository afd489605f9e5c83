//! Nodes that form a cluster, and clients that know all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use control_client::{Client, ClientSettings};
use proto_public::metalmesh::admin::v1::{
    ClusterServiceInviteRequest, ClusterServicePromoteRequest, ClusterServiceStatusRequest,
    ClusterServiceStatusResponse, DoctorServiceGetRequest, DoctorServiceGetResponse,
};
use tests_lab::state::write_private;
use tests_lab::wait::wait_for;
use tokio::runtime::{Handle, Runtime};

use crate::cluster::Cluster;
use crate::snapshots::Snapshots;
use crate::workload::Workload;

const API_PORT: u16 = 4443;
const PEER_PORT: u16 = 4444;
/// The tenant whose projects are the registers.
const LOGIN: &str = "metal-stack";
/// Longest wait for a node to start and for a leader.
const START: Duration = Duration::from_secs(60);
/// The part of a snapshot that a node has received, in its data directory.
const PARTIAL: &str = "snapshots/tmp-partial";
/// Longest wait for a node to catch up.
const CATCH_UP: Duration = Duration::from_secs(120);
/// Longest time of one call about the cluster. A later answer is an error.
const QUESTION: Duration = Duration::from_secs(10);
/// Log entries that a node may be behind while clients write, and still count as caught up.
const BEHIND_MAX: u64 = 50;

/// A cluster with all nodes voting.
#[derive(Debug)]
pub struct Site {
    /// The processes and cables.
    pub cluster: Cluster,
    /// Its threads live where the clients are.
    runtime: Runtime,
    program: PathBuf,
    token: String,
    /// Of every node.
    snapshots: Snapshots,
}

impl Site {
    /// A cluster of so many voters.
    ///
    /// # Errors
    /// A step that failed.
    pub fn form(nodes: usize) -> Result<Self> {
        Self::form_on(Cluster::lay_out(nodes)?, Snapshots::Seldom)
    }

    /// The same; a node that was away is sent a snapshot, slowly.
    ///
    /// # Errors
    /// A step that failed.
    pub fn form_with_slow_snapshots(nodes: usize) -> Result<Self> {
        Self::form_on(Cluster::lay_out(nodes)?, Snapshots::Slow)
    }

    /// The same; the last node has a small disk.
    ///
    /// # Errors
    /// A step that failed.
    pub fn form_with_small_disk(nodes: usize) -> Result<Self> {
        let mut cluster = Cluster::lay_out(nodes)?;
        cluster.small_disk(nodes - 1)?;
        Self::form_on(cluster, Snapshots::Often)
    }

    fn form_on(cluster: Cluster, snapshots: Snapshots) -> Result<Self> {
        let place = cluster.clients.path();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(move || {
                if let Err(error) = tests_lab::netns::enter(&place) {
                    eprintln!("clients are in the wrong place: {error:#}");
                }
            })
            .enable_all()
            .build()?;
        let mut site = Self {
            cluster,
            runtime,
            program: program()?,
            token: String::new(),
            snapshots,
        };
        site.start(0)?;
        let token = site.cluster.path("admin-token")?;
        site.said(0, "ready ")?;
        site.token = fs::read_to_string(token)?.trim().to_owned();
        for at in 1..site.cluster.nodes.len() {
            site.join(at)?;
        }
        Ok(site)
    }

    /// Starts a node, for the first time or on the data that it left.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, at: usize) -> Result<()> {
        let config = self.configure(at)?;
        let mut arguments = vec!["--config".to_owned(), config.display().to_string()];
        if at == 0 {
            let token = self.cluster.path("admin-token")?;
            arguments.extend(["--token-file".to_owned(), token.display().to_string()]);
        }
        let program = self.program.clone();
        self.cluster.spawn(at, &program, &arguments)
    }

    /// Sets the program of nodes that start from now on.
    pub fn set_program(&mut self, program: PathBuf) {
        self.program = program;
    }

    fn configure(&self, at: usize) -> Result<PathBuf> {
        let address = self.cluster.nodes[at].address();
        let path = self
            .cluster
            .path(&format!("node{}/metalmeshd.toml", at + 1))?;
        let [peers, store] = self.snapshots.settings();
        let text = format!(
            "data_dir = \"{}\"\n[api]\nlisten = \"{address}:{API_PORT}\"\n\
             [mesh]\nlisten = \"{address}:{API_PORT}\"\n\
             [peers]\nlisten = \"{address}:{PEER_PORT}\"\njoin = {}\nticket = \"{}\"\n{peers}\
             [store]\n{store}",
            self.cluster.data_dir(at)?.display(),
            at > 0,
            self.ticket(at)?.display(),
        );
        fs::write(&path, text)?;
        Ok(path)
    }

    fn ticket(&self, at: usize) -> Result<PathBuf> {
        self.cluster.path(&format!("node{}/ticket", at + 1))
    }

    /// Joins a node and gives it a vote.
    fn join(&mut self, at: usize) -> Result<()> {
        self.start(at)?;
        let line = self.said(at, "waiting key=")?;
        let key = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("key="))
            .context("no key")?
            .to_owned();
        let node = self.client(0)?;
        let invited = self.call(async move {
            let request = ClusterServiceInviteRequest {
                key_sha256: key,
                minutes: 15,
                ..Default::default()
            };
            Ok(node.clusters().invite(request).await?.into_inner())
        })?;
        let id = invited.node.context("no node")?.id;
        // The tests count nodes from 0, the cluster from 1.
        if usize::try_from(id)? != at + 1 {
            bail!("node {} was given the number {id}", at + 1);
        }
        write_private(&self.ticket(at)?, invited.secret.as_bytes())?;
        self.said(at, "ready ")?;
        let node = self.client(0)?;
        wait_for("a vote for the node", CATCH_UP, || {
            let node = node.clone();
            self.call(async move {
                let request = ClusterServicePromoteRequest { id };
                node.clusters().promote(request).await?;
                Ok(Some(()))
            })
        })
    }

    /// Index of the last entry of the leader's log.
    ///
    /// # Errors
    /// No node leads.
    pub fn last_log(&self) -> Result<u64> {
        Ok(self.leaders_log()?.last_log)
    }

    fn leaders_log(&self) -> Result<DoctorServiceGetResponse> {
        let node = self.client(self.leader()?)?;
        self.call(async move {
            let answer = node.doctor().get(DoctorServiceGetRequest {}).await?;
            Ok(answer.into_inner())
        })
    }

    /// Waits until a node that is away since the entry `last` needs a snapshot: the leader keeps only
    /// later entries.
    ///
    /// # Errors
    /// Too few writes are done.
    pub fn outgrown(&self, last: u64) -> Result<()> {
        wait_for("a snapshot in place of the log", CATCH_UP, || {
            Ok((self.leaders_log()?.purged > last).then_some(()))
        })
    }

    /// Waits until a node that runs has a part of a snapshot and not yet all of it: its bytes.
    ///
    /// # Errors
    /// It needs none.
    pub fn receiving(&self, at: usize) -> Result<u64> {
        let partial = self.cluster.data_dir(at)?.join(PARTIAL);
        wait_for("a part of a snapshot", CATCH_UP, || {
            self.cluster.nodes[at].process()?.check()?;
            Ok(Some(bytes_below(&partial)).filter(|bytes| *bytes > 0))
        })
    }

    /// Waits for a line in a node's log.
    fn said(&self, at: usize, text: &str) -> Result<String> {
        wait_for(&format!("{text:?} of node {}", at + 1), START, || {
            self.cluster.nodes[at].process()?.check()?;
            let log = self.cluster.log(at)?;
            Ok(log.lines().find(|l| l.contains(text)).map(str::to_owned))
        })
    }

    /// A client of one node, as the admin.
    ///
    /// # Errors
    /// The token cannot be used.
    pub fn client(&self, at: usize) -> Result<Client> {
        let url = format!("http://{}:{API_PORT}", self.cluster.nodes[at].address());
        // Its connection is made by a thread of the runtime, and so from where clients are.
        let _context = self.runtime.enter();
        Ok(Client::new(
            &ClientSettings::new(url).with_token(&self.token),
        )?)
    }

    /// The runtime whose threads are where the clients are.
    pub(crate) fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    fn call<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let work = async move { tokio::time::timeout(QUESTION, work).await };
        let task = self.runtime.spawn(work);
        self.runtime.block_on(task)??
    }

    /// The cluster as its leader sees it, from the first node that can tell.
    ///
    /// # Errors
    /// No node answers.
    pub fn status(&self) -> Result<ClusterServiceStatusResponse> {
        wait_for("a leader", START, || {
            for at in 0..self.cluster.nodes.len() {
                let node = self.client(at)?;
                let answer = self.call(async move {
                    let request = ClusterServiceStatusRequest { all: false };
                    Ok(node.clusters().status(request).await?.into_inner())
                });
                // Only the leader knows how far nodes are behind. An answer without that may be stale.
                if let Ok(status) = answer
                    && status.leader > 0
                    && status.nodes.iter().any(|n| n.behind.is_some())
                {
                    return Ok(Some(status));
                }
            }
            Ok(None)
        })
    }

    /// Position of the leader among the nodes.
    ///
    /// # Errors
    /// No node leads.
    pub fn leader(&self) -> Result<usize> {
        Ok(usize::try_from(self.status()?.leader)? - 1)
    }

    /// Waits until a node has what the others have, and answers.
    ///
    /// # Errors
    /// It does not come back.
    pub fn caught_up(&self, at: usize) -> Result<()> {
        let id = u64::try_from(at)? + 1;
        wait_for(&format!("node {id} to catch up"), CATCH_UP, || {
            self.cluster.nodes[at].process()?.check()?;
            let status = self.status()?;
            let node = status.nodes.iter().find(|n| n.id == id);
            let behind = node.and_then(|n| n.behind);
            if behind.is_none_or(|behind| behind > BEHIND_MAX) {
                return Ok(None);
            }
            let node = self.client(at)?;
            self.call(async move {
                let request = ClusterServiceStatusRequest { all: false };
                node.clusters().status(request).await?;
                Ok(Some(()))
            })
        })
    }

    /// Registers, and clients of every node to use them.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub fn workload(&self, registers: usize) -> Result<Arc<Workload>> {
        let nodes = (0..self.cluster.nodes.len())
            .map(|at| self.client(at))
            .collect::<Result<Vec<_>>>()?;
        self.call(Workload::new(nodes, LOGIN, registers))
    }

    /// Tells watchers that the workload has ended.
    ///
    /// # Errors
    /// The first node does not answer.
    pub fn end(&self, workload: &Arc<Workload>) -> Result<()> {
        let workload = Arc::clone(workload);
        self.call(async move { workload.make_end(LOGIN).await })
    }

    /// Reads every register by every node, for the history's end.
    ///
    /// # Errors
    /// A node does not answer.
    pub fn read_everywhere(&self, workload: &Arc<Workload>) -> Result<()> {
        let workload = Arc::clone(workload);
        wait_for("an answer of every node", CATCH_UP, || {
            let workload = Arc::clone(&workload);
            self.call(async move { workload.read_all().await.map(Some) })
        })
    }
}

/// Bytes of all files of a directory that may be gone at any moment.
fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// The control node's program of the next feature level. `None` means that it is not built.
pub fn next_program() -> Option<PathBuf> {
    let next = program().ok()?.with_file_name("metalmeshd-next");
    next.exists().then_some(next)
}

/// The control node's program, built with this test.
fn program() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let built = test.parent().and_then(|deps| deps.parent());
    let program = built.context("no target directory")?.join("metalmeshd");
    if !program.exists() {
        bail!(
            "{} is not built: cargo build --package control-server",
            program.display()
        );
    }
    Ok(program)
}
