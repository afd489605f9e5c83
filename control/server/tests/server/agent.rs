//! A switch's agent and three control nodes: the node that it is connected to dies, and it goes
//! on with another one. The nodes are processes; the agent is the real one, on a switch in memory.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use agents_core::config::{Config, DriftPolicy};
use agents_kit::LogFormat;
use agents_kit::{Agent, AgentArgs, AgentKind, KeyArgs, SessionState};
use agents_nos::Nos;
use agents_nos::stub::Stub;
use proto_mesh::SwitchDesired;
use proto_public::admin::v2::{
    PartitionServiceCreateRequest, SwitchServiceGetRequest, SwitchServicePortRequest,
};
use proto_public::api::v2::{NicState, Partition, Switch, SwitchPortStatus};
use proto_public::metalmesh::admin::v1::{self as mesh_admin, JoinServiceCreateRequest};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::daemon::PATIENCE;
use crate::nodes::{Cluster, eventually};

/// Waits until a port is switched on or off.
pub(crate) async fn until(switch: &Stub, port: &str, is_up: bool) {
    eventually("change of the port", || async {
        let port = &switch.observe().await.unwrap().model.ports[port];
        (port.admin_up == is_up)
            .then_some(())
            .ok_or_else(|| format!("{port:?}"))
    })
    .await;
}

/// The last byte of the addresses of a switch that was invited: of `leaf2` 12. No two switches of a
/// partition have one management address.
fn number_of(args: &AgentArgs) -> u8 {
    let name = args.state_dir.to_string_lossy().into_owned();
    let digit = name.chars().next_back().and_then(|last| last.to_digit(10));
    10 + u8::try_from(digit.unwrap_or(1)).unwrap()
}

/// An agent at work.
pub(crate) struct Running {
    pub(crate) agent: Agent,
    pub(crate) switch: Stub,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Running {
    /// Starts as `metalmesh-core run` does.
    pub(crate) async fn start(args: &AgentArgs) -> Self {
        Self::start_on(args, DriftPolicy::Heal, &["swp1", "swp2"]).await
    }

    /// The same with a policy of the site, on a switch with these ports.
    pub(crate) async fn start_on(args: &AgentArgs, drift: DriftPolicy, ports: &[&str]) -> Self {
        let agent = args.clone().start(AgentKind::Core).await.unwrap();
        let number = number_of(args);
        let config = Config {
            drift,
            ..Config::new(
                "rack-1",
                [10, 90, 0, number].into(),
                [10, 91, 0, number].into(),
            )
        };
        let (switch, stop) = (
            Stub::with_links(ports.iter().map(|name| (*name, [2, 0, 0, 0, 0, 1]))).unwrap(),
            CancellationToken::new(),
        );
        let mut task = JoinSet::new();
        let work = agents_core::run(agent.clone(), config, switch.clone(), stop.clone());
        task.spawn(work);
        Self {
            agent,
            switch,
            stop,
            task,
        }
    }

    /// Waits until there is a session or none.
    pub(crate) async fn session(&self, is_up: bool) {
        let mut session = self.agent.session();
        let there = session.wait_for(|state| matches!(state, SessionState::Up) == is_up);
        let waited = tokio::time::timeout(PATIENCE, there).await;
        assert!(waited.is_ok(), "the session never was up: {is_up}");
    }

    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.task.join_next().await {
            ended.unwrap();
        }
        self.agent.close().await;
    }
}

pub(crate) fn write_private(path: &Path, text: &str) {
    use std::io::Write;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// The agent's arguments, with a ticket that was asked for at node `at`.
pub(crate) async fn invited(cluster: &Cluster, at: usize, dir: &Path) -> AgentArgs {
    invited_as(cluster, at, dir, "leaf1").await
}

/// The same for the agent of another switch.
pub(crate) async fn invited_as(
    cluster: &Cluster,
    at: usize,
    dir: &Path,
    switch: &str,
) -> AgentArgs {
    order_ticket(cluster, at, dir, switch, false).await.unwrap()
}

/// The same, or the refusal of the ticket. With `reenrol` it is for an agent whose identity was revoked.
pub(crate) async fn order_ticket(
    cluster: &Cluster,
    at: usize,
    dir: &Path,
    switch: &str,
    reenrol: bool,
) -> Result<AgentArgs, Status> {
    let name = if switch == "leaf1" { "core" } else { switch };
    let state_dir = dir.join(name);
    let key = KeyArgs {
        state_dir: state_dir.clone(),
    };
    let request = JoinServiceCreateRequest {
        kind: mesh_admin::AgentKind::Core.into(),
        partition: "lab".into(),
        id: switch.into(),
        key_sha256: key.fingerprint().unwrap(),
        minutes: 5,
        tpm_ek_sha256: String::new(),
        tpm_ek_certificate: Vec::new(),
        reenrol,
    };
    let made = cluster.client(at).joins().create(request).await?;
    let ticket: PathBuf = dir.join(format!("{name}.ticket"));
    write_private(&ticket, &made.into_inner().secret);
    Ok(AgentArgs {
        control: cluster.nodes.iter().map(|it| it.mesh.clone()).collect(),
        state_dir,
        ticket_file: Some(ticket),
        offline: false,
        tpm: agents_kit::tpm::TPM_PATH.into(),
        log: LogFormat::default(),
        metrics: None,
        otlp: None,
    })
}

/// The switch as a node shows it, once it is as wanted.
pub(crate) async fn shown(
    cluster: &Cluster,
    at: usize,
    wanted: impl Fn(&Switch) -> bool,
) -> Switch {
    eventually("switch as wanted", || async {
        let request = SwitchServiceGetRequest { id: "leaf1".into() };
        let found = cluster.client(at).admin_switches().get(request).await;
        let found = found.map_err(|e| e.to_string())?.into_inner().switch;
        found
            .filter(|it| wanted(it))
            .ok_or_else(|| "it is another one".to_owned())
    })
    .await
}

fn state(switch: &Switch, port: &str) -> NicState {
    let nic = switch.nics.iter().find(|nic| nic.name == port).unwrap();
    nic.state.unwrap()
}

pub(crate) async fn order(cluster: &Cluster, at: usize, port: &str, status: SwitchPortStatus) {
    eventually("order", || async {
        let request = SwitchServicePortRequest {
            id: "leaf1".into(),
            nic_name: port.into(),
            status: status.into(),
        };
        let done = cluster.client(at).admin_switches().port(request).await;
        done.map(drop).map_err(|e| e.to_string())
    })
    .await;
}

pub(crate) async fn three(dir: &Path) -> Cluster {
    let mut cluster = Cluster::form(&dir.join("nodes"));
    cluster.join(&dir.join("nodes/2"), 0).await;
    cluster.join(&dir.join("nodes/3"), 0).await;
    with_partition(cluster).await
}

/// The same cluster with a partition.
pub(crate) async fn with_partition(cluster: Cluster) -> Cluster {
    let partition = Partition {
        id: "lab".into(),
        ..Partition::default()
    };
    let request = PartitionServiceCreateRequest {
        partition: Some(partition),
    };
    let made = cluster.client(0).admin_partitions().create(request).await;
    made.unwrap();
    cluster
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_goes_on_with_another_node() {
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = three(dir.path()).await;
    let args = invited(&cluster, 1, dir.path()).await;
    let running = Running::start(&args).await;
    // The ticket has served; from here on the certificate is all that the agent has.
    fs::remove_file(args.ticket_file.as_ref().unwrap()).unwrap();
    shown(&cluster, 2, |it| it.nics.len() == 2).await;
    order(&cluster, 2, "swp1", SwitchPortStatus::Down).await;
    until(&running.switch, "swp1", false).await;

    // Agents are with the node that leads.
    let leader = usize::try_from(cluster.status(0).await.leader).unwrap() - 1;
    let certificate = running.agent.credential().chain;
    cluster.nodes[leader].kill();
    let killed = Instant::now();
    running.session(false).await;
    let rest: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    let leads = eventually("new leader", || async {
        match usize::try_from(cluster.status(rest[0]).await.leader).unwrap() {
            0 => Err("nobody leads".to_owned()),
            id if id - 1 == leader => Err("the dead one leads".to_owned()),
            id => Ok(id - 1),
        }
    })
    .await;
    let third = rest.into_iter().find(|at| *at != leads).unwrap();
    order(&cluster, third, "swp1", SwitchPortStatus::Up).await;
    order(&cluster, third, "swp2", SwitchPortStatus::Down).await;
    until(&running.switch, "swp1", true).await;
    until(&running.switch, "swp2", false).await;
    println!(
        "the agent obeyed another node {:?} after the kill",
        killed.elapsed()
    );
    running.session(true).await;
    assert_eq!(running.agent.credential().chain, certificate);
    // What it reports comes in there as well.
    shown(&cluster, third, |it| {
        let is_down = |port: &str| state(it, port).actual() == SwitchPortStatus::Down;
        is_down("swp2") && !is_down("swp1") && it.last_sync_error.is_none()
    })
    .await;

    // A restart of the agent needs neither the ticket nor the dead node.
    running.stop().await;
    let again = Running::start(&args).await;
    until(&again.switch, "swp2", false).await;
    order(&cluster, third, "swp2", SwitchPortStatus::Up).await;
    until(&again.switch, "swp2", true).await;
    again.stop().await;

    // The dead node comes back; the agent may go wherever it likes.
    cluster.nodes[leader].start();
    cluster.nodes[leader].wait_said("ready ");
    shown(&cluster, leader, |it| {
        state(it, "swp2").desired() == SwitchPortStatus::Up
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_goes_by_what_control_signed_while_it_is_away() {
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = with_partition(Cluster::form(&dir.path().join("nodes"))).await;
    let args = invited(&cluster, 0, dir.path()).await;
    let running = Running::start(&args).await;
    shown(&cluster, 0, |it| it.nics.len() == 2).await;
    order(&cluster, 0, "swp2", SwitchPortStatus::Down).await;
    until(&running.switch, "swp2", false).await;
    running.stop().await;
    cluster.nodes[0].kill();

    // A switch that was rebooted has its ports up; nobody but the disk says otherwise.
    for offline in [false, true] {
        let args = AgentArgs {
            offline,
            ..args.clone()
        };
        let again = Running::start(&args).await;
        until(&again.switch, "swp2", false).await;
        again.stop().await;
    }

    // Somebody with the disk in hand wants the port up.
    let path = args.state_dir.join("switch.last-good");
    let good = fs::read(&path).unwrap();
    let mut bad = good.clone();
    let at = bad.windows(4).position(|it| it == b"swp2").unwrap();
    bad[at + 3] = b'1';
    fs::write(&path, bad).unwrap();
    let offline = AgentArgs {
        offline: true,
        ..args.clone()
    };
    let agent = offline.clone().start(AgentKind::Core).await.unwrap();
    let refused = agent.require_last_good::<SwitchDesired>("switch");
    let refused = format!("{:#}", anyhow::Error::from(refused.unwrap_err()));
    assert!(
        refused.contains("switch.last-good is refused") && refused.contains("did not sign"),
        "{refused}"
    );

    // Control is back, and has its say.
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    let again = Running::start(&args).await;
    until(&again.switch, "swp2", false).await;
    order(&cluster, 0, "swp2", SwitchPortStatus::Up).await;
    until(&again.switch, "swp2", true).await;
    again.stop().await;
}
