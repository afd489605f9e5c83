//! A rolling upgrade to the program of the next level and back, as `metalmesh cluster upgrade plan`
//! orders it, while many clients write and a switch's agent obeys. It prints how long nothing was
//! acknowledged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use control_client::Client;
use control_state::FEATURE_LEVEL;
use proto_public::api::v2::{ProjectServiceCreateRequest, SwitchPortStatus};
use serde_json::Value;
use tokio::task::{JoinSet, block_in_place};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::agent::{Running, invited, order, shown, three, until};
use crate::cli::metalmesh;
use crate::daemon::{PATIENCE, program};
use crate::mixed::next;
use crate::nodes::{Cluster, TENANT, eventually};

/// Clients that write at the same time.
const WRITERS: usize = 16;
/// Pace of a client, so that the lists at the end of the test stay short.
const PACE: Duration = Duration::from_millis(20);
/// Writes that are waited for after each step.
const PROGRESS: usize = 50;

/// The tally of all writers together.
#[derive(Debug, Default)]
struct Seen {
    acknowledged: BTreeSet<String>,
    /// Attempts that failed and were repeated.
    retries: usize,
    /// Calls that failed for good.
    failed: Vec<String>,
    last: Option<Instant>,
    /// The longest time without an acknowledgement.
    pause: Duration,
}

impl Seen {
    fn acknowledge(&mut self, name: String) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.pause = self.pause.max(now - last);
        }
        self.acknowledged.insert(name);
    }
}

/// Clients that repeat a call that failed at the next node.
struct Writers {
    seen: Arc<Mutex<Seen>>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Writers {
    fn start(cluster: &Cluster) -> Self {
        let (seen, stop) = (Arc::<Mutex<Seen>>::default(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        for number in 0..WRITERS {
            let nodes = 0..cluster.nodes.len();
            let writer = Writer {
                name: format!("writer-{number}"),
                clients: nodes.map(|at| cluster.client(at)).collect(),
                at: number,
                seen: seen.clone(),
            };
            tasks.spawn(writer.run(stop.clone()));
        }
        Self { seen, stop, tasks }
    }

    async fn progress(&self) {
        let count = || self.seen.lock().unwrap().acknowledged.len();
        let goal = count() + PROGRESS;
        eventually("progress of the writers", || async {
            match count() {
                now if now >= goal => Ok(()),
                now => Err(format!("{now} of {goal} writes were acknowledged")),
            }
        })
        .await;
    }

    async fn finish(mut self) -> Seen {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

struct Writer {
    name: String,
    clients: Vec<Client>,
    /// The node that it asks next.
    at: usize,
    seen: Arc<Mutex<Seen>>,
}

impl Writer {
    async fn run(mut self, stop: CancellationToken) {
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0_u64.. {
            pace.tick().await;
            if stop.is_cancelled() {
                return;
            }
            let name = format!("{}-{number}", self.name);
            let written = self.write(&name).await;
            match written {
                Ok(()) => self.seen.lock().unwrap().acknowledge(name),
                Err(error) => self.seen.lock().unwrap().failed.push(error),
            }
        }
    }

    /// Creates a project, at one node after the other until one has done it.
    async fn write(&mut self, name: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let request = ProjectServiceCreateRequest {
                login: TENANT.to_owned(),
                name: name.to_owned(),
                ..Default::default()
            };
            let at = self.at % self.clients.len();
            let error = match self.clients[at].projects().create(request).await {
                Ok(_) => return Ok(()),
                // The answer to an earlier attempt was lost.
                Err(status) if status.code() == Code::AlreadyExists => return Ok(()),
                Err(status) => status,
            };
            if Instant::now() >= until {
                return Err(format!("{name}: {error}"));
            }
            self.seen.lock().unwrap().retries += 1;
            self.at += 1;
        }
    }
}

/// An operator with the command line.
struct Operator {
    program: PathBuf,
    dir: PathBuf,
}

impl Operator {
    fn new(cluster: &Cluster, dir: &Path) -> Option<Self> {
        std::fs::write(dir.join("token"), &cluster.token).unwrap();
        Some(Self {
            program: metalmesh()?,
            dir: dir.to_owned(),
        })
    }

    /// Runs a command at a node.
    fn run(&self, cluster: &Cluster, at: usize, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .args(["--api-url", &cluster.nodes[at].api])
            .env("METALMESH_CONFIG", self.dir.join("no-contexts.yaml"))
            .env("METALMESH_TOKEN_FILE", self.dir.join("token"));
        block_in_place(|| command.output().unwrap())
    }

    fn ok(&self, cluster: &Cluster, at: usize, arguments: &[&str]) -> String {
        let output = self.run(cluster, at, arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The plan for a program, and whether it may be carried out.
    fn plan(&self, cluster: &Cluster, program: &Path, more: &[&str]) -> (Value, bool) {
        let program = program.to_str().unwrap();
        let plan = ["cluster", "upgrade", "plan", "-o", "json", "--program"];
        let output = self.run(cluster, 0, &[&plan[..], &[program], more].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        let plan = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {output:?}"));
        (plan, output.status.success())
    }

    /// Asserts that a program cannot be rolled out, for this reason.
    fn assert_refused(&self, cluster: &Cluster, program: &Path, wanted: &str) {
        let (plan, is_possible) = self.plan(cluster, program, &[]);
        assert!(!is_possible, "{plan}");
        assert!(plan["obstacles"].to_string().contains(wanted), "{plan}");
    }

    /// Takes the first step of a plan. `false` means that there is none.
    fn take_step(&self, cluster: &mut Cluster, program: &Path, more: &[&str]) -> bool {
        let until = Instant::now() + PATIENCE;
        let plan = loop {
            let (plan, is_possible) = self.plan(cluster, program, more);
            if is_possible {
                break plan;
            }
            // A new leader has not heard of all others yet.
            assert!(Instant::now() < until, "{plan}");
        };
        let Some(step) = plan["steps"].get(0) else {
            return false;
        };
        println!("{step}");
        let node = step["node"].as_u64().unwrap();
        let number = node.to_string();
        if step["step"] == "transfer-leader" {
            self.ok(cluster, 0, &["cluster", "transfer-leader", &number]);
            return true;
        }
        let at = usize::try_from(node).unwrap() - 1;
        let restarted = &mut cluster.nodes[at];
        assert!(restarted.terminate(), "{}", restarted.log());
        restarted.program = program.to_owned();
        restarted.start();
        restarted.wait_said("ready ");
        let path = program.to_str().unwrap();
        let status = ["cluster", "upgrade", "status", "--program", path];
        self.ok(cluster, at, &[&status[..], &["--wait", &number]].concat());
        true
    }
}

/// The service that has to go on after each step: clients write, and an order reaches the agent of a
/// switch.
struct Service {
    writers: Writers,
    agent: Running,
    is_up: bool,
}

impl Service {
    async fn goes_on(&mut self, cluster: &Cluster) {
        self.writers.progress().await;
        self.is_up = !self.is_up;
        let status = match self.is_up {
            true => SwitchPortStatus::Up,
            false => SwitchPortStatus::Down,
        };
        order(cluster, 0, "swp1", status).await;
        until(&self.agent.switch, "swp1", self.is_up).await;
    }
}

async fn level(cluster: &Cluster) -> u32 {
    cluster.status(0).await.feature_level
}

#[tokio::test(flavor = "multi_thread")]
async fn the_planned_order_loses_no_call_and_no_order_forward_and_back() {
    let Some(next) = next() else { return };
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = three(dir.path()).await;
    cluster.allow_projects(100_000).await;
    let Some(operator) = Operator::new(&cluster, dir.path()) else {
        return;
    };
    // After the level was raised only a backup leads back.
    operator.assert_refused(&cluster, &next, "there is no backup");
    let file = dir.path().join("backup");
    let file = file.to_str().unwrap();
    operator.ok(&cluster, 0, &["cluster", "backup", file, "--plain"]);
    let backup = ["--backup", file];

    let args = invited(&cluster, 0, dir.path()).await;
    let mut service = Service {
        agent: Running::start(&args).await,
        writers: Writers::start(&cluster),
        is_up: true,
    };
    shown(&cluster, 0, |switch| switch.nics.len() == 2).await;
    service.goes_on(&cluster).await;
    // One node goes forward and back: the level is that of the others.
    assert!(operator.take_step(&mut cluster, &next, &backup));
    service.goes_on(&cluster).await;
    assert_eq!(level(&cluster).await, FEATURE_LEVEL);
    let earlier = Path::new(program());
    while operator.take_step(&mut cluster, earlier, &backup) {
        service.goes_on(&cluster).await;
    }
    // All go forward, and from then on none goes back.
    while operator.take_step(&mut cluster, &next, &backup) {
        service.goes_on(&cluster).await;
    }
    assert_eq!(level(&cluster).await, FEATURE_LEVEL + 1);
    operator.assert_refused(&cluster, earlier, "is too old");

    service.agent.stop().await;
    let seen = service.writers.finish().await;
    println!(
        "{} writes were acknowledged after {} retries, the longest pause was {:?}",
        seen.acknowledged.len(),
        seen.retries,
        seen.pause
    );
    assert_eq!(seen.failed, Vec::<String>::new());
    for at in 0..3 {
        let there = cluster.projects(at).await;
        let lost: BTreeSet<_> = seen.acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "node {} has lost {lost:?}", at + 1);
    }
}
