//! `metalmesh cluster upgrade`: which node gets the new metalmeshd next, and what stands against it.
//!
//! `collect` gathers facts over the network and judges nothing. `plan` and `progress` are pure
//! functions of these facts.

mod collect;
mod facts;
mod plan;
mod print;
mod program;
mod progress;
mod remark;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};

use crate::app::App;
use crate::text::parse_duration;

pub(super) use self::facts::is_heard;

/// Pause between two status requests of `status --wait`.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Default limit of `status --wait`: a start with a large state, and what was written meanwhile.
const TIMEOUT_DEFAULT: &str = "10m";

#[derive(Debug, Subcommand)]
pub(crate) enum UpgradeCommand {
    /// Show in which order the nodes get a new metalmeshd, and what stands against it.
    ///
    /// Followers come before the leader, which hands leadership over before its turn. Nodes that run
    /// the new program already are left out, so that the plan of an interrupted upgrade is the rest of
    /// it. Changes nothing; exits with 1 if something stands against the upgrade.
    Plan(UpgradePlanArgs),
    /// Show which nodes run the new metalmeshd, and which is next.
    Status(UpgradeStatusArgs),
}

#[derive(Debug, Args)]
pub(crate) struct UpgradePlanArgs {
    /// The new metalmeshd, a file of this host: it is asked for its version and its feature level.
    /// Without it the newest program that a node runs.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// A backup that `metalmesh cluster backup` wrote; only its head is read. Without it the newest
    /// scheduled backup.
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
    /// API of another control node. Repeatable. The leader alone knows the scheduled backups. The
    /// context's token is sent to it as well, since all nodes of a cluster accept the same tokens.
    #[arg(long = "node", value_name = "URL")]
    nodes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeStatusArgs {
    /// The new metalmeshd, a file of this host: it is asked for its version and its feature level.
    /// Without it the newest program that a node runs.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Wait until this node is heard and has caught up, with --program until it runs that program.
    #[arg(long, value_name = "NODE")]
    wait: Option<u64>,
    /// Longest time to wait.
    #[arg(long, default_value = TIMEOUT_DEFAULT, value_parser = parse_duration, requires = "wait")]
    timeout: Duration,
}

pub(super) async fn run(app: &App, command: UpgradeCommand) -> Result<()> {
    match command {
        UpgradeCommand::Plan(args) => plan(app, &args).await,
        UpgradeCommand::Status(args) => status(app, &args).await,
    }
}

async fn plan(app: &App, args: &UpgradePlanArgs) -> Result<()> {
    let facts = collect::collect(app, args).await?;
    let plan = plan::plan(&facts);
    if app.output.is_table() {
        print::plan(&plan);
    } else {
        app.output.value(&serde_json::to_value(&plan)?)?;
    }
    let count = plan.obstacles.len();
    ensure!(
        count == 0,
        "the upgrade cannot go on now: {count} obstacles; mend them and plan again"
    );
    Ok(())
}

async fn status(app: &App, args: &UpgradeStatusArgs) -> Result<()> {
    let program = args.program.as_deref().map(program::ask).transpose()?;
    if let Some(node) = args.wait {
        wait(app, node, program.as_ref(), args.timeout).await?;
    }
    let cluster = collect::cluster(app).await?;
    let progress = progress::progress(&cluster, program.as_ref());
    if app.output.is_table() {
        print::progress(&progress);
        return Ok(());
    }
    app.output.value(&serde_json::to_value(&progress)?)
}

/// Waits until a node is back. A call that fails is repeated: the node that answers may be the one
/// that restarts.
async fn wait(
    app: &App,
    node: u64,
    program: Option<&facts::ProgramVersion>,
    timeout: Duration,
) -> Result<()> {
    let began = Instant::now();
    loop {
        let lack = match collect::cluster(app).await {
            Ok(cluster) => progress::lack(&cluster, node, program),
            Err(error) => Some(format!("{error:#}")),
        };
        let Some(lack) = lack else { return Ok(()) };
        ensure!(
            began.elapsed() < timeout,
            "not after {} s: {lack}; see: metalmesh cluster status",
            timeout.as_secs()
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
