//! `metalmesh cluster`: the control nodes.

pub(crate) mod backup;

use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    ClusterServiceAcceptTimeRequest, ClusterServiceInviteRequest, ClusterServicePromoteRequest,
    ClusterServiceReconcileAfterRestoreRequest, ClusterServiceRemoveRequest,
    ClusterServiceStatusRequest, ClusterServiceStatusResponse, ClusterServiceTransferLeaderRequest,
    ClusterTime,
};

use super::given;
use crate::app::App;
use crate::files;
use crate::output::to_json;
use crate::text::moment;

/// How often `promote --wait` looks.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long `promote --wait` waits.
const WAIT_MAX: Duration = Duration::from_secs(600);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the first node's data directory and its admin token, on this host.
    Init(Init),
    /// Create a ticket for a node that waits to join, bound to the key that it shows.
    Join(Join),
    /// Show the nodes: who leads, who lags, who may fail.
    Status(Status),
    /// Take a node out for good, or withdraw an invitation.
    #[command(visible_alias = "rm")]
    Remove(Remove),
    /// Give a learner that has caught up a vote.
    Promote(Promote),
    /// Make another voter the leader.
    TransferLeader { node: u64 },
    /// Set the cluster's time to its nodes' clock, when the clock of this host agrees with it.
    ///
    /// A tick of the leader that jumps ahead by more than an hour is held: nothing expires, and no
    /// deadline passes, until the clock is set right or this command confirms it. It is also needed
    /// after the whole cluster was down for more than an hour.
    AcceptTime,
    /// Compare a restored state with what was observed since, and let it be judged again.
    ///
    /// After metalmeshd restore no machine counts as silent, none is power-cycled, wiped, installed
    /// or given out, and no switch port moves, until this ran. Machines that nothing proves to be what
    /// the backup knows are locked, since a tenant may have got them after it, and their ports stay
    /// in the segments that the switches report. With --dry-run it only compares.
    ReconcileAfterRestore {
        /// Judge all machines by what the backup knows: lock none, and move ports to what it has.
        #[arg(long)]
        judge_silent: bool,
    },
    /// Back the whole state up into a file, or look into such a file.
    Backup(Box<backup::Backup>),
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The node's configuration file.
    #[arg(long = "node-config", value_name = "FILE")]
    node_config: PathBuf,
    /// Write the admin token to this new file (mode 0600).
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// The program of the node.
    #[arg(long, value_name = "FILE", default_value = "metalmeshd")]
    metalmeshd: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Join {
    /// SHA-256 of the node's public key, as metalmeshd prints it while it waits.
    #[arg(long, value_name = "HEX")]
    key_sha256: String,
    /// How long the ticket is good for.
    #[arg(long, default_value_t = 15)]
    minutes: u32,
    /// Write the ticket to this new file (mode 0600) instead of stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Nodes that were removed and invitations that have ended, too.
    #[arg(long = "all-nodes")]
    all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    node: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Promote {
    node: u64,
    /// Wait until it has caught up, at most ten minutes.
    #[arg(long)]
    wait: bool,
}

/// Runs `init`, which needs no server: there is none yet.
pub(crate) fn init(init: &Init) -> Result<()> {
    let status = Process::new(&init.metalmeshd)
        .arg("init")
        .arg("--config")
        .arg(&init.node_config)
        .arg("--token-file")
        .arg(&init.token_file)
        .stdin(Stdio::null())
        .status()
        .with_context(|| {
            let program = init.metalmeshd.display();
            format!("cannot run {program}; name it with --metalmeshd, on the node's own host")
        })?;
    ensure!(status.success(), "metalmeshd init did not succeed");
    Ok(())
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut clusters = app.client.clusters();
    match command {
        Command::Init(command) => init(&command),
        Command::Join(command) => join(app, command).await,
        Command::Status(Status { all }) => {
            let request = ClusterServiceStatusRequest { all };
            let status = clusters.status(request).await?.into_inner();
            show(app, &status)
        }
        Command::Remove(Remove { node }) => {
            let request = ClusterServiceRemoveRequest {
                id: node,
                dry_run: app.is_dry(),
            };
            let answer = clusters.remove(request).await?.into_inner();
            app.output.one(&given(answer.node)?)
        }
        Command::Promote(command) => promote(app, &command).await,
        Command::Backup(command) => backup::run(app, *command).await,
        Command::TransferLeader { node } => {
            let request = ClusterServiceTransferLeaderRequest { id: node };
            let answer = clusters.transfer_leader(request).await?.into_inner();
            app.output.one(&given(answer.node)?)
        }
        Command::ReconcileAfterRestore { judge_silent } => reconcile(app, judge_silent).await,
        Command::AcceptTime => {
            let request = ClusterServiceAcceptTimeRequest {
                time: Some(SystemTime::now().into()),
            };
            let answer = clusters.accept_time(request).await?.into_inner();
            const NAME: &str = "metalmesh.admin.v1.ClusterTime";
            app.output.message(NAME, &given(answer.time)?, |time| {
                outln!("{}", cluster_time(time));
            })
        }
    }
}

async fn reconcile(app: &App, judge_silent: bool) -> Result<()> {
    const NAME: &str = "metalmesh.admin.v1.ClusterServiceReconcileAfterRestoreResponse";
    let request = ClusterServiceReconcileAfterRestoreRequest { judge_silent };
    let mut clusters = app.client.clusters();
    let answer = clusters.reconcile_after_restore(request).await?;
    app.output.message(NAME, answer.get_ref(), |answer| {
        outln!(
            "restored from a backup of {}, which ends with revision {}",
            moment(answer.backup_made_at.as_ref()),
            answer.backup_revision
        );
        outln!();
        drop(app.output.list(&answer.machines));
        if !answer.ports.is_empty() {
            outln!("\nports that stay where they are until their machine is made available, or an");
            outln!("administrator switches them (metalmesh switch port SWITCH PORT up):\n");
            drop(app.output.list(&answer.ports));
        }
        if !answer.silent_switches.is_empty() {
            let silent = answer.silent_switches.join(", ");
            outln!("\nnot heard since the restore, and waited for: switch {silent}");
        }
    })
}

async fn join(app: &App, join: Join) -> Result<()> {
    let request = ClusterServiceInviteRequest {
        key_sha256: join.key_sha256,
        minutes: join.minutes,
    };
    let answer = app.client.clusters().invite(request).await?.into_inner();
    let node = given(answer.node)?;
    if let Some(path) = join.out {
        files::write_private(&path, &format!("{}\n", answer.secret))?;
        return app.output.one(&node);
    }
    let whole = serde_json::json!({ "node": to_json(&node)?, "secret": answer.secret });
    app.output.secret(&answer.secret, &whole)
}

async fn promote(app: &App, promote: &Promote) -> Result<()> {
    if promote.wait {
        wait_until_caught_up(app, promote.node).await?;
    }
    let request = ClusterServicePromoteRequest { id: promote.node };
    let answer = app.client.clusters().promote(request).await?.into_inner();
    app.output.one(&given(answer.node)?)
}

async fn wait_until_caught_up(app: &App, id: u64) -> Result<()> {
    let began = Instant::now();
    loop {
        let request = ClusterServiceStatusRequest { all: true };
        let status = app.client.clusters().status(request).await?.into_inner();
        let Some(node) = status.nodes.iter().find(|n| n.id == id) else {
            bail!("node {id} is unknown; see: metalmesh cluster status");
        };
        if node.behind == Some(0) {
            return Ok(());
        }
        ensure!(
            began.elapsed() < WAIT_MAX,
            "node {id} has not caught up within {} s; see: metalmesh cluster status",
            WAIT_MAX.as_secs()
        );
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn show(app: &App, status: &ClusterServiceStatusResponse) -> Result<()> {
    const NAME: &str = "metalmesh.admin.v1.ClusterServiceStatusResponse";
    app.output.message(NAME, status, |status| {
        let leader = match status.leader {
            0 => "nobody leads".to_owned(),
            leader => format!("node {leader} leads"),
        };
        outln!(
            "cluster {:?} ({}): {leader} in term {}, feature level {}, {} may fail; said node {}",
            status.name,
            status.cluster_id,
            status.term,
            status.feature_level,
            status.may_fail,
            status.answered_by
        );
        if let Some(time) = &status.time {
            outln!("{}", cluster_time(time));
        }
        outln!();
        drop(app.output.list(&status.nodes));
    })
}

/// The cluster's time and what is held, in a line.
fn cluster_time(time: &ClusterTime) -> String {
    let at = |stamp: &Option<prost_types::Timestamp>| {
        stamp
            .as_ref()
            .map_or_else(|| "unknown".to_owned(), ToString::to_string)
    };
    let mut known = format!("the cluster's time is {}", at(&time.time));
    if time.restored_from.is_some() {
        known = format!(
            "{known}; restored from a backup of {}, nothing is judged until: \
             metalmesh cluster reconcile-after-restore",
            at(&time.restored_from)
        );
    }
    if time.held.is_none() {
        return known;
    }
    format!(
        "{known}; held: the clock of node {} shows {} (metalmesh doctor --only cluster-time)",
        time.held_node,
        at(&time.held)
    )
}
