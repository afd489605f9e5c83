//! The `metalmesh-bmc` binary: command line and wiring.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agents_kit::{AgentArgs, AgentKind, StateDir};
use agents_update::mesh_agent::{AgentUpdate, MeshCommand, MeshProgram, MeshRun, beside_update};
use anyhow::Context;
use base_runtime::Chain;
use bmc_agent::{BmcAgent, Config};
use clap::Parser;
use tokio_util::sync::CancellationToken;

/// This program, as its releases name it.
static PROGRAM: MeshProgram = MeshProgram {
    name: "metalmesh-bmc",
    argument: c"metalmesh-bmc",
    unhealthy: "it had no session with control, or read fewer than half of the BMCs that the program \
        before it read,",
    check: |text| Config::check(text).map_err(|error| Chain(&error).to_string()),
};

/// Finds and drives the BMCs of one partition.
#[derive(Debug, Parser)]
#[command(name = "metalmesh-bmc", version)]
struct Cli {
    #[command(subcommand)]
    command: MeshCommand<Run>,
}

/// Read BMCs and carry out control's orders.
#[derive(Clone, Debug, clap::Args)]
struct Run {
    /// Configuration file, TOML.
    #[arg(long, value_name = "FILE", env = "METALMESH_BMC_CONFIG")]
    config: PathBuf,
    #[command(flatten)]
    agent: AgentArgs,
}

impl AsRef<AgentArgs> for Run {
    fn as_ref(&self) -> &AgentArgs {
        &self.agent
    }
}

impl MeshRun for Run {
    fn config(&self) -> &Path {
        &self.config
    }
}

fn main() -> ExitCode {
    let cli: Cli = base_runtime::parse(base_runtime::build_info!());
    agents_update::mesh_agent::main(&PROGRAM, cli.command, run)
}

async fn run(run: Run, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let Run {
        config: file,
        agent: args,
    } = run;
    let config =
        Config::read(&file).with_context(|| format!("configuration {}", file.display()))?;
    let agent = tokio::select! {
        agent = args.start(AgentKind::Bmc) => agent?,
        () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
    };
    let update = AgentUpdate::open(&PROGRAM, &agent, &args.state_dir, &file)?;
    let metrics = AgentUpdate::metrics(update.as_ref());
    let _metrics = args.serve_metrics(&agent, AgentKind::Bmc, metrics).await?;
    let traced = args.send_spans(&agent, AgentKind::Bmc)?;
    let identity = agent.identity();
    tracing::info!(
        partition = identity.partition,
        agent = identity.id,
        listed = config.bmcs.len(),
        "working"
    );
    let dir = StateDir::open(&args.state_dir)?;
    let bmc = BmcAgent::new(agent.clone(), config, dir)?;
    let reach = bmc.reach();
    let ailment = || reach.ailment();
    let ((), code) = beside_update(update, ailment, stop.clone(), bmc.run(stop)).await;
    traced.end().await;
    agent.close().await;
    Ok(code)
}
