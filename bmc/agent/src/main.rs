//! The `metalmesh-bmc` binary: command line and wiring.

use std::path::PathBuf;
use std::process::ExitCode;

use agents_kit::{AgentArgs, AgentCommand, AgentKind, StateDir};
use anyhow::Context;
use bmc_agent::{BmcAgent, Config};
use clap::Parser;
use tokio_util::sync::CancellationToken;

/// Finds and drives the BMCs of one partition.
#[derive(Debug, Parser)]
#[command(name = "metalmesh-bmc", version)]
struct Cli {
    #[command(subcommand)]
    command: AgentCommand<Run>,
}

/// Read BMCs and carry out control's orders.
#[derive(Debug, clap::Args)]
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

fn main() -> ExitCode {
    let cli: Cli = base_runtime::parse(base_runtime::build_info!());
    agents_kit::main(cli.command, run)
}

async fn run(run: Run, stop: CancellationToken) -> anyhow::Result<()> {
    let Run {
        config,
        agent: args,
    } = run;
    let config =
        Config::read(&config).with_context(|| format!("configuration {}", config.display()))?;
    let agent = tokio::select! {
        agent = args.start(AgentKind::Bmc) => agent?,
        () = stop.cancelled() => return Ok(()),
    };
    let _metrics = args.serve_metrics(&agent, AgentKind::Bmc).await?;
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
    bmc.run(stop).await;
    traced.end().await;
    agent.close().await;
    Ok(())
}
