//! The `metalmesh-core` binary: command line and wiring.

use std::path::PathBuf;
use std::process::ExitCode;

use agents_core::config::{Config, SwitchOs};
use agents_kit::{AgentArgs, AgentCommand, AgentKind};
use agents_nos::Nos;
use agents_nos::linux::Linux;
use agents_nos::sonic::Sonic;
use clap::Parser;
use proto_mesh::SwitchDesired;
use tokio_util::sync::CancellationToken;
use tracing::info;

#[derive(Debug, Parser)]
#[command(name = "metalmesh-core", version, about = "The agent of one switch.")]
struct Cli {
    #[command(subcommand)]
    command: AgentCommand<Run>,
}

/// Keep the switch in the state that control desires.
#[derive(Debug, clap::Args)]
struct Run {
    #[command(flatten)]
    agent: AgentArgs,
    /// Configuration of the switch, TOML.
    #[arg(long, value_name = "FILE", default_value = "/etc/metalmesh/core.toml")]
    config: PathBuf,
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
    let mut config = Config::load(&config)?;
    config.control = agents_core::control_listeners(&args.control_addresses()?).await;
    match config.nos {
        SwitchOs::Linux => serve(Linux::open(config.linux())?, config, args, stop).await,
        SwitchOs::Sonic => serve(Sonic::open(config.sonic()), config, args, stop).await,
    }
}

async fn serve(
    switch: impl Nos + 'static,
    config: Config,
    args: AgentArgs,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let agent = tokio::select! {
        agent = args.start(AgentKind::Core) => agent?,
        () = stop.cancelled() => return Ok(()),
    };
    agent.require_last_good::<SwitchDesired>("switch")?;
    let _metrics = args.serve_metrics(&agent, AgentKind::Core).await?;
    let traced = args.send_spans(&agent, AgentKind::Core)?;
    info!(switch = %agent.identity().id, partition = %agent.identity().partition, "started");
    agents_core::run(agent.clone(), config, switch, stop).await;
    info!("stopped; the switch keeps forwarding");
    traced.end().await;
    agent.close().await;
    Ok(())
}
