//! `metalmesh cluster`: the control nodes.

pub(crate) mod backup;
pub(crate) mod invite;
mod upgrade;

use std::path::PathBuf;
use std::process::Command as Process;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    ClusterServiceAcceptTimeRequest, ClusterServicePromoteRequest,
    ClusterServiceReconcileAfterRestoreRequest, ClusterServiceRemoveRequest,
    ClusterServiceStatusRequest, ClusterServiceStatusResponse, ClusterServiceTransferLeaderRequest,
    ClusterTime,
};

use super::given;
use crate::app::App;
use crate::text::moment;

/// Pause between two status requests of `promote --wait`.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time that `promote --wait` waits for a learner to catch up; then it fails.
const CATCH_UP_MAX: Duration = Duration::from_secs(600);

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Create the first node's data directory and an admin token, on this host.
    Init(ClusterInitArgs),
    /// Invite a node, and print the one line that joins it when it is pasted on its host.
    Invite(invite::ClusterInviteArgs),
    /// Join this host to the cluster whose invitation is on standard input.
    ///
    /// With --key-sha256 the command creates a ticket for a node that waits to join, as
    /// `cluster invite --key-sha256` does.
    Join(invite::ClusterJoinArgs),
    /// Show the nodes: leader, replication lag, and how many may fail.
    Status {
        /// Include removed nodes and expired invitations.
        #[arg(long = "all-nodes")]
        all: bool,
    },
    /// Remove a node permanently, or withdraw an invitation.
    #[command(visible_alias = "rm")]
    Remove {
        /// Number of the node.
        node: u64,
    },
    /// Make a learner that has caught up a voter.
    Promote {
        /// Number of the node.
        node: u64,
        /// Wait until the learner has caught up, for at most ten minutes.
        #[arg(long)]
        wait: bool,
    },
    /// Transfer leadership to another voter.
    TransferLeader {
        /// Number of the node.
        node: u64,
    },
    /// Set the cluster's time to its nodes' clock, if the clock of this host agrees with it.
    ///
    /// When the leader's clock jumps ahead by more than an hour, the cluster's time is held: nothing
    /// expires and no deadline passes until the clock is corrected or this command confirms it. The
    /// command is also needed after the whole cluster was down for more than an hour.
    AcceptTime,
    /// Compare a restored state with observations since, and resume reconciliation.
    ///
    /// After metalmeshd restore, reconciliation is paused until this command ran: no machine counts
    /// as silent, none is power-cycled, wiped, installed or allocated, and no switch port changes.
    /// Machines whose state nothing proves to be that of the backup are locked, as they may have been
    /// allocated after it; their ports stay in the segments that the switches report. With --dry-run
    /// the command only compares.
    ReconcileAfterRestore {
        /// Take the backup's state for all machines: lock none, and set the ports as it has them.
        #[arg(long)]
        judge_silent: bool,
    },
    /// Back up the whole state into a file, or show and verify such a file.
    Backup(Box<backup::ClusterBackupArgs>),
    /// Plan an upgrade of metalmeshd on all nodes, and show how far it is.
    #[command(subcommand)]
    Upgrade(upgrade::UpgradeCommand),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterInitArgs {
    /// Configuration file of the node.
    #[arg(long = "node-config", value_name = "FILE")]
    node_config: PathBuf,
    /// Write the admin token to this new file (mode 0600).
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// Program of the node.
    #[arg(long, value_name = "FILE", default_value = "metalmeshd")]
    metalmeshd: PathBuf,
}

/// Runs `init`, which needs no server, as there is none yet.
pub(crate) fn init(init: &ClusterInitArgs) -> Result<()> {
    let status = Process::new(&init.metalmeshd)
        .arg("init")
        .arg("--config")
        .arg(&init.node_config)
        .arg("--token-file")
        .arg(&init.token_file)
        .status()
        .with_context(|| {
            let program = init.metalmeshd.display();
            format!("cannot run {program}; name it with --metalmeshd, on the node's own host")
        })?;
    ensure!(status.success(), "metalmeshd init failed");
    Ok(())
}

pub(crate) async fn run(app: &App, command: ClusterCommand) -> Result<()> {
    let mut clusters = app.client.clusters();
    match command {
        ClusterCommand::Init(command) => init(&command),
        ClusterCommand::Invite(command) => invite::invite(app, command).await,
        ClusterCommand::Join(command) if command.is_local() => invite::join_here(&command),
        ClusterCommand::Join(command) => invite::invite(app, command.into_invite()).await,
        ClusterCommand::Status { all } => {
            let request = ClusterServiceStatusRequest { all };
            let status = clusters.status(request).await?.into_inner();
            show(app, &status)
        }
        ClusterCommand::Remove { node } => {
            let request = ClusterServiceRemoveRequest {
                id: node,
                dry_run: app.is_dry(),
            };
            let answer = clusters.remove(request).await?.into_inner();
            app.output.one(&given(answer.node)?)
        }
        ClusterCommand::Promote { node, wait } => promote(app, node, wait).await,
        ClusterCommand::Backup(command) => backup::run(app, *command).await,
        ClusterCommand::Upgrade(command) => upgrade::run(app, command).await,
        ClusterCommand::TransferLeader { node } => {
            let request = ClusterServiceTransferLeaderRequest { id: node };
            let answer = clusters.transfer_leader(request).await?.into_inner();
            app.output.one(&given(answer.node)?)
        }
        ClusterCommand::ReconcileAfterRestore { judge_silent } => {
            reconcile(app, judge_silent).await
        }
        ClusterCommand::AcceptTime => {
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
            outln!("\nports that keep their segment until their machine is made available, or an");
            outln!("administrator switches them (metalmesh switch port SWITCH PORT up):\n");
            drop(app.output.list(&answer.ports));
        }
        if !answer.silent_switches.is_empty() {
            let silent = answer.silent_switches.join(", ");
            outln!("\nwaiting for switches that were not heard since the restore: {silent}");
        }
    })
}

async fn promote(app: &App, node: u64, wait: bool) -> Result<()> {
    if wait {
        wait_until_caught_up(app, node).await?;
    }
    let request = ClusterServicePromoteRequest { id: node };
    let answer = app.client.clusters().promote(request).await?.into_inner();
    app.output.one(&given(answer.node)?)
}

async fn wait_until_caught_up(app: &App, id: u64) -> Result<()> {
    let began = Instant::now();
    loop {
        let request = ClusterServiceStatusRequest { all: true };
        let status = app.client.clusters().status(request).await?.into_inner();
        let Some(node) = status.nodes.iter().find(|n| n.id == id) else {
            bail!("there is no node {id}; see: metalmesh cluster status");
        };
        // A node that died with the whole log is not behind either.
        let is_heard = upgrade::is_heard(&status, node);
        if node.behind == Some(0) && is_heard {
            return Ok(());
        }
        ensure!(
            began.elapsed() < CATCH_UP_MAX,
            "node {id} {} within {} s; see: metalmesh cluster status",
            if is_heard {
                "has not caught up"
            } else {
                "was not heard"
            },
            CATCH_UP_MAX.as_secs()
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn show(app: &App, status: &ClusterServiceStatusResponse) -> Result<()> {
    const NAME: &str = "metalmesh.admin.v1.ClusterServiceStatusResponse";
    app.output.message(NAME, status, |status| {
        let leader = match status.leader {
            0 => "no node leads".to_owned(),
            leader => format!("node {leader} leads"),
        };
        outln!(
            "cluster {:?} ({}): {leader} in term {}, feature level {}, {} may fail; answered by \
             node {}",
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

/// The cluster's time on one line, with the reason if it is held.
fn cluster_time(time: &ClusterTime) -> String {
    let at = |stamp: &Option<prost_types::Timestamp>| {
        stamp
            .as_ref()
            .map_or_else(|| "unknown".to_owned(), ToString::to_string)
    };
    let mut known = format!("the cluster's time is {}", at(&time.time));
    if time.restored_from.is_some() {
        known = format!(
            "{known}; restored from a backup of {}, reconciliation is paused until: \
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
