//! Clients that read and write registers through the public API, each call at a node of its own
//! choice. A register is the description of a project.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use control_client::Client;
use proto_public::api::v2::{
    OptimisticLockingStrategy, ProjectServiceCreateRequest, ProjectServiceGetRequest,
    ProjectServiceUpdateRequest, UpdateMeta,
};
use tokio::time::error::Elapsed;
use tonic::Code;

use crate::history::{Action, History, Op, Value};

/// What a client waits for one answer; longer than the cluster needs to find a new leader.
const CALL: Duration = Duration::from_secs(12);
/// Between two calls of a client, so that a history stays short enough to be checked.
const PACE: Duration = Duration::from_millis(40);
/// Calls that a client makes elsewhere after a node did not answer, before it tries that one again.
/// Without it clients spend their time waiting for a node that is cut off.
const ELSEWHERE: usize = 20;

/// Name of the project that is made last, see [`Workload::make_end`].
pub(crate) const END: &str = "end";

/// Registers of a cluster, and who uses them.
#[derive(Debug)]
pub struct Workload {
    nodes: Vec<Client>,
    projects: Vec<String>,
    history: History,
    written: AtomicU64,
    acknowledged: AtomicU64,
    lists: AtomicUsize,
    stop: AtomicBool,
}

impl Workload {
    /// Makes the registers.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn new(nodes: Vec<Client>, login: &str, registers: usize) -> Result<Arc<Self>> {
        let node = nodes.first().context("a cluster has nodes")?;
        let mut projects = Vec::new();
        for number in 0..registers {
            projects.push(make(node, login, &format!("register{number}")).await?);
        }
        Ok(Arc::new(Self {
            nodes,
            projects,
            history: History::default(),
            written: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            lists: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        }))
    }

    /// The nodes, as clients see them.
    pub fn nodes(&self) -> &[Client] {
        &self.nodes
    }

    /// Ids of the registers.
    pub fn registers(&self) -> &[String] {
        &self.projects
    }

    /// The register of this id.
    pub fn register(&self, id: &str) -> Option<usize> {
        self.projects.iter().position(|project| project == id)
    }

    /// Whether no client begins another call.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Makes something that comes after all that was acknowledged, so that watchers know when they
    /// have been told all of it.
    ///
    /// # Errors
    /// The first node does not answer.
    pub async fn make_end(&self, login: &str) -> Result<()> {
        let node = self.nodes.first().context("a cluster has nodes")?;
        make(node, login, END).await.map(drop)
    }

    /// Acknowledged writes so far.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Lists that watchers have had so far.
    pub fn lists(&self) -> usize {
        self.lists.load(Ordering::SeqCst)
    }

    pub(crate) fn note_list(&self) {
        self.lists.fetch_add(1, Ordering::SeqCst);
    }

    /// What was asked and answered.
    pub fn history(&self) -> Vec<Op> {
        self.history.ops()
    }

    /// No client begins another call.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// One client, until [`stop`](Self::stop).
    pub async fn client(self: Arc<Self>, number: usize) {
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut silent = None;
        let mut elsewhere = 0_usize;
        while !self.stop.load(Ordering::SeqCst) {
            pace.tick().await;
            let key = rand::random_range(0..self.projects.len());
            let at = self.any_node_but(silent.filter(|_| elsewhere > 0));
            elsewhere = elsewhere.saturating_sub(1);
            let node = &self.nodes[at];
            let answered = if rand::random() {
                self.write(number, key, node).await
            } else {
                // Who gets no answer has learned nothing.
                self.read(number, key, node).await
            };
            if answered.is_err_and(|error| error.is::<Elapsed>()) {
                (silent, elsewhere) = (Some(at), ELSEWHERE);
            }
        }
    }

    /// Every register, as every node sees it now: the end of a history.
    ///
    /// # Errors
    /// A node does not answer.
    pub async fn read_all(&self) -> Result<()> {
        for node in &self.nodes {
            for key in 0..self.projects.len() {
                self.read(usize::MAX, key, node).await?;
            }
        }
        Ok(())
    }

    fn any_node_but(&self, silent: Option<usize>) -> usize {
        let others: Vec<_> = (0..self.nodes.len())
            .filter(|node| Some(*node) != silent)
            .collect();
        others[rand::random_range(0..others.len())]
    }

    async fn read(&self, client: usize, key: usize, node: &Client) -> Result<()> {
        let invoked = self.history.tick();
        let request = ProjectServiceGetRequest {
            project: self.projects[key].clone(),
        };
        let mut projects = node.projects();
        let answer = tokio::time::timeout(CALL, projects.get(request)).await??;
        let project = answer.into_inner().project.context("no project")?;
        let value: Value = project.description.parse()?;
        self.history.push(Op {
            client,
            key,
            action: Action::Read(value),
            invoked,
            answered: Some(self.history.tick()),
        });
        Ok(())
    }

    async fn write(&self, client: usize, key: usize, node: &Client) -> Result<()> {
        let value = self.written.fetch_add(1, Ordering::SeqCst) + 1;
        let request = ProjectServiceUpdateRequest {
            project: self.projects[key].clone(),
            update_meta: Some(UpdateMeta {
                updated_at: None,
                locking_strategy: OptimisticLockingStrategy::Server.into(),
            }),
            description: Some(value.to_string()),
            ..ProjectServiceUpdateRequest::default()
        };
        let invoked = self.history.tick();
        let mut projects = node.projects();
        let answer = tokio::time::timeout(CALL, projects.update(request)).await;
        let answered = match &answer {
            Ok(Ok(_)) => {
                self.acknowledged.fetch_add(1, Ordering::SeqCst);
                Some(self.history.tick())
            }
            // Refused before anything was done.
            Ok(Err(status)) if status.code() == Code::ResourceExhausted => return Ok(()),
            // It may have been done, or be done later.
            Ok(Err(_)) | Err(_) => None,
        };
        self.history.push(Op {
            client,
            key,
            action: Action::Write(value),
            invoked,
            answered,
        });
        answer??;
        Ok(())
    }
}

/// A project; its description is the value of a register.
async fn make(node: &Client, login: &str, name: &str) -> Result<String> {
    let request = ProjectServiceCreateRequest {
        login: login.to_owned(),
        name: name.to_owned(),
        description: "0".to_owned(),
        ..ProjectServiceCreateRequest::default()
    };
    let answer = node.projects().create(request).await?.into_inner();
    Ok(answer.project.context("no project")?.uuid)
}
