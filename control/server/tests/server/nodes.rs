//! Nodes of a cluster as processes, and what an operator does with them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use control_client::{Client, ClientSettings, ServerContexts};
use proto_identity::Key;
use proto_public::admin::v2::ProjectServiceListRequest;
use proto_public::api::v2::{ProjectServiceCreateRequest, ProjectServiceGetRequest};
use proto_public::metalmesh::admin::v1::{
    Budgets, ClusterServiceInviteRequest, ClusterServicePromoteRequest,
    ClusterServiceRemoveRequest, ClusterServiceStatusRequest, ClusterServiceStatusResponse,
    ClusterServiceTransferLeaderRequest, Node as NodeInfo, Settings as ClusterSettings,
    SettingsServiceSetRequest,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::daemon::{PATIENCE, program};

pub(crate) const TENANT: &str = "metal-stack";

/// One node: its files, its ports, and the process while it runs.
pub(crate) struct Node {
    pub(crate) dir: PathBuf,
    pub(crate) api: String,
    /// Where agents call.
    pub(crate) mesh: String,
    /// What it runs; taken by the next start.
    pub(crate) program: PathBuf,
    pub(crate) child: Option<Child>,
    /// Lines of its stdout so far.
    said: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

pub(crate) fn free_tcp() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

pub(crate) fn free_udp() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

impl Node {
    /// Writes the configuration of a node in `dir`.
    pub(crate) fn new(dir: PathBuf, join: bool, more: &str) -> Self {
        let node = Self::alone(dir, more);
        node.give_peers(join);
        node
    }

    /// The same for a node that knows no peers.
    pub(crate) fn alone(dir: PathBuf, more: &str) -> Self {
        std::fs::create_dir_all(&dir).unwrap();
        let api = format!("127.0.0.1:{}", free_tcp());
        let mesh = format!("127.0.0.1:{}", free_udp());
        let config = format!(
            "data_dir = {:?}\n[api]\nlisten = \"{api}\"\n[mesh]\nlisten = \"{mesh}\"\n{more}\n",
            dir.join("data")
        );
        std::fs::write(dir.join("node.toml"), config).unwrap();
        Self {
            dir,
            api: format!("http://{api}"),
            mesh,
            program: program().into(),
            child: None,
            said: Arc::default(),
            reader: None,
        }
    }

    /// Adds `[peers]` to the configuration.
    pub(crate) fn give_peers(&self, join: bool) {
        let section = format!(
            "[peers]\nlisten = \"127.0.0.1:{}\"\njoin = {join}\n",
            free_udp()
        );
        let path = self.dir.join("node.toml");
        let config = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, config + &section).unwrap();
    }

    pub(crate) fn command(&self, subcommand: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(subcommand)
            .arg("--config")
            .arg(self.dir.join("node.toml"));
        command
    }

    pub(crate) fn init(&self) -> Output {
        let context = self.dir.join("context.yaml");
        let mut command = self.command(&["init"]);
        command.arg("--context-file").arg(context).output().unwrap()
    }

    pub(crate) fn start(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("log"))
            .unwrap();
        let mut child = self
            .command(&[])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let said = Arc::new(Mutex::new(Vec::new()));
        self.said = said.clone();
        self.reader = Some(std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                said.lock().unwrap().push(line);
            }
        }));
        self.child = Some(child);
    }

    /// The rest of the first line that begins so.
    pub(crate) fn wait_said(&mut self, begin: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.said.lock().unwrap().clone();
            if let Some(rest) = said.iter().find_map(|line| line.strip_prefix(begin)) {
                return rest.to_owned();
            }
            let ended = self.child.as_mut().and_then(|c| c.try_wait().unwrap());
            let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "the node ended: {ended:?}\n{log}");
            assert!(Instant::now() < until, "never said {begin:?}\n{log}");
            std::thread::yield_now();
        }
    }

    /// The key of a node that waits to join.
    pub(crate) fn key(&mut self) -> String {
        let said = self.wait_said("waiting key=");
        said.split(' ').next().unwrap().to_owned()
    }

    /// The key by which it joined.
    pub(crate) fn fingerprint(&self) -> String {
        let pem = std::fs::read_to_string(self.dir.join("data/peer.key")).unwrap();
        Key::from_pem(&pem).unwrap().fingerprint()
    }

    pub(crate) fn give_ticket(&self, ticket: &str) {
        std::fs::write(self.dir.join("data/node.ticket"), ticket).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
    }

    pub(crate) fn client(&self, token: &str) -> Client {
        Client::new(&ClientSettings::new(&self.api).with_token(token.to_owned())).unwrap()
    }

    /// Waits until its log has `text`, in all its runs together so many times.
    pub(crate) fn wait_logged(&self, text: &str, times: usize) {
        let until = Instant::now() + PATIENCE;
        while self.log().matches(text).count() < times {
            assert!(
                Instant::now() < until,
                "never logged {text:?}\n{}",
                self.log()
            );
            std::thread::yield_now();
        }
    }

    /// SIGTERM; whether it ended well.
    pub(crate) fn terminate(&mut self) -> bool {
        let pid = self.child.as_ref().unwrap().id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.unwrap().success());
        self.wait_ended()
    }

    /// Waits until it has ended by itself; whether it calls that a success.
    pub(crate) fn wait_ended(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            let ended = self.child.as_mut().and_then(|c| c.try_wait().unwrap());
            if let Some(status) = ended {
                self.kill();
                return status.success();
            }
            assert!(Instant::now() < until, "it goes on\n{}", self.log());
            std::thread::yield_now();
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Nodes and the admin's token.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) token: String,
}

pub(crate) async fn eventually<T, F: Future<Output = Result<T, String>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(why) => assert!(Instant::now() < until, "no {what}: {why}"),
        }
        tokio::task::yield_now().await;
    }
}

impl Cluster {
    /// One node that leads itself.
    pub(crate) fn form(dir: &Path) -> Self {
        Self::form_with(dir, "")
    }

    pub(crate) fn form_with(dir: &Path, more: &str) -> Self {
        Self::form_of(Node::new(dir.join("1"), false, more))
    }

    /// The same of a node that is configured already.
    pub(crate) fn form_of(mut first: Node) -> Self {
        let made = first.init();
        assert!(made.status.success(), "{made:?}");
        let contexts = ServerContexts::load(&first.dir.join("context.yaml")).unwrap();
        let token = contexts.current().unwrap().api_token.as_ref().unwrap();
        let token = token.expose().to_owned();
        first.start();
        first.wait_said("ready ");
        Self::of(first, token)
    }

    /// One that runs, and its admin's token.
    pub(crate) fn of(first: Node, token: String) -> Self {
        Self {
            nodes: vec![first],
            token,
        }
    }

    pub(crate) fn client(&self, at: usize) -> Client {
        self.nodes[at].client(&self.token)
    }

    pub(crate) async fn invite(&self, at: usize, key: &str) -> Result<(u64, String), Status> {
        let request = ClusterServiceInviteRequest {
            key_sha256: key.to_owned(),
            minutes: 5,
        };
        let answer = self
            .client(at)
            .clusters()
            .invite(request)
            .await?
            .into_inner();
        Ok((answer.node.unwrap().id, answer.secret))
    }

    /// Joins another node, asked for at node `at`, and gives it a vote.
    pub(crate) async fn join(&mut self, dir: &Path, at: usize) -> u64 {
        let id = self.learn(Node::new(dir.to_owned(), true, ""), at).await;
        self.promote(id).await;
        id
    }

    /// Joins another node, asked for at node `at`; it has no vote.
    pub(crate) async fn learn(&mut self, mut node: Node, at: usize) -> u64 {
        node.start();
        let (id, ticket) = self.invite(at, &node.key()).await.unwrap();
        node.give_ticket(&ticket);
        node.wait_said("ready ");
        self.nodes.push(node);
        id
    }

    pub(crate) async fn promote(&self, id: u64) {
        eventually("promotion", || async {
            let request = ClusterServicePromoteRequest { id };
            let done = self.client(0).clusters().promote(request).await;
            done.map(drop).map_err(|e| e.to_string())
        })
        .await;
    }

    pub(crate) async fn status(&self, at: usize) -> ClusterServiceStatusResponse {
        let request = ClusterServiceStatusRequest { all: true };
        eventually("status", || async {
            let status = self.client(at).clusters().status(request).await;
            status
                .map(tonic::Response::into_inner)
                .map_err(|e| e.to_string())
        })
        .await
    }

    pub(crate) async fn node(&self, at: usize, id: u64) -> NodeInfo {
        let status = self.status(at).await;
        status.nodes.into_iter().find(|n| n.id == id).unwrap()
    }

    pub(crate) async fn write(&self, at: usize, name: &str) -> Result<String, Status> {
        let request = ProjectServiceCreateRequest {
            login: TENANT.to_owned(),
            name: name.to_owned(),
            ..Default::default()
        };
        let answer = self.client(at).projects().create(request).await?;
        Ok(answer.into_inner().project.unwrap().uuid)
    }

    /// Writes for certain: what a change of leaders left in doubt is looked at again.
    pub(crate) async fn wrote(&self, at: usize, name: &str) {
        eventually("write", || async {
            match self.write(at, name).await {
                Err(status) if status.code() == Code::AlreadyExists => Ok(()),
                other => other.map(drop).map_err(|e| e.to_string()),
            }
        })
        .await;
    }

    pub(crate) async fn reads(&self, at: usize, id: &str) -> Result<(), Status> {
        let request = ProjectServiceGetRequest {
            project: id.to_owned(),
        };
        self.client(at).projects().get(request).await.map(drop)
    }

    /// Names of all projects, as a node sees them now.
    pub(crate) async fn projects(&self, at: usize) -> BTreeSet<String> {
        let all = eventually("list of projects", || async {
            let request = ProjectServiceListRequest { query: None };
            let listed = self.client(at).admin_projects().list(request).await;
            listed
                .map(tonic::Response::into_inner)
                .map_err(|e| e.to_string())
        });
        all.await.projects.into_iter().map(|it| it.name).collect()
    }

    pub(crate) async fn remove(&self, at: usize, id: u64, dry_run: bool) -> Result<(), Status> {
        let request = ClusterServiceRemoveRequest { id, dry_run };
        self.client(at).clusters().remove(request).await.map(drop)
    }

    /// Hands leadership over, and waits until node `at` has heard of it.
    pub(crate) async fn lead(&self, at: usize, id: u64) {
        let request = ClusterServiceTransferLeaderRequest { id };
        let moved = self.client(at).clusters().transfer_leader(request).await;
        moved.unwrap();
        // The node that was asked may hear of it a moment later.
        eventually("new leader", || async {
            match self.status(at).await.leader {
                leader if leader == id => Ok(()),
                other => Err(format!("node {other} leads")),
            }
        })
        .await;
    }

    /// Lets a tenant have more projects than it may by default.
    pub(crate) async fn allow_projects(&self, projects: u32) {
        let budgets = Budgets {
            projects_per_tenant: Some(projects),
            ..Default::default()
        };
        let request = SettingsServiceSetRequest {
            settings: Some(ClusterSettings {
                budgets: Some(budgets),
                ..Default::default()
            }),
        };
        self.client(0).settings().set(request).await.unwrap();
    }

    /// Somebody who makes one project after the other, through one node after the other.
    pub(crate) fn writer(&self) -> Writer {
        let clients: Vec<_> = (0..self.nodes.len()).map(|at| self.client(at)).collect();
        let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
        let stop = CancellationToken::new();
        let (names, stopped) = (acknowledged.clone(), stop.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            for number in 0_u64.. {
                if stopped.is_cancelled() {
                    return;
                }
                let at = usize::try_from(number).unwrap() % clients.len();
                let name = format!("written-{number}");
                let request = ProjectServiceCreateRequest {
                    login: TENANT.to_owned(),
                    name: name.clone(),
                    ..Default::default()
                };
                // Of a write that failed nobody knows whether it will be there.
                if clients[at].projects().create(request).await.is_ok() {
                    names.lock().unwrap().insert(name);
                }
            }
        });
        Writer {
            acknowledged,
            stop,
            task,
        }
    }
}

/// See [`Cluster::writer`].
pub(crate) struct Writer {
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Writer {
    /// Waits until so many more writes were acknowledged.
    pub(crate) async fn progress(&self, writes: usize) {
        let count = || self.acknowledged.lock().unwrap().len();
        let goal = count() + writes;
        eventually("progress of the writer", || async {
            match count() {
                now if now >= goal => Ok(()),
                now => Err(format!("{now} of {goal} writes were acknowledged")),
            }
        })
        .await;
    }

    /// Names of what was acknowledged.
    pub(crate) async fn finish(mut self) -> BTreeSet<String> {
        self.stop.cancel();
        while let Some(ended) = self.task.join_next().await {
            ended.unwrap();
        }
        let names = self.acknowledged.lock().unwrap();
        names.clone()
    }
}
