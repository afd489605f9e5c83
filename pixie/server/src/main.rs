//! The `metalmesh-pixie` binary: command line and wiring.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use agents_kit::{AgentArgs, AgentCommand, AgentKind};
use anyhow::Context;
use clap::Parser;
use pixie_server::{Config, Pixie, mesh};
use proto_mesh::BootDesired;
use tokio_util::sync::CancellationToken;

/// Boots the machines of one partition from the network.
#[derive(Debug, Parser)]
#[command(name = "metalmesh-pixie", version)]
struct Cli {
    #[command(subcommand)]
    command: AgentCommand<Run>,
}

/// Serve DHCP, TFTP and HTTP.
#[derive(Debug, clap::Args)]
struct Run {
    /// Configuration file, TOML.
    #[arg(long, value_name = "FILE", env = "METALMESH_PIXIE_CONFIG")]
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
    // Read before the agent joins: a ticket must not be spent on a start that fails.
    let config =
        Config::read(&config).with_context(|| format!("configuration {}", config.display()))?;
    let agent = tokio::select! {
        agent = args.start(AgentKind::Pixie) => agent?,
        () = stop.cancelled() => return Ok(()),
    };
    // Checked before any socket is open: an offline pixie without a desired state would keep every
    // machine waiting for an installer.
    agent.require_last_good::<BootDesired>("boot")?;
    let _metrics = args.serve_metrics(&agent, AgentKind::Pixie).await?;
    let traced = args.send_spans(&agent, AgentKind::Pixie)?;
    let control = Arc::new(mesh::MeshControl::new(&agent));
    let pixie = Pixie::spawn(config, control, &args.state_dir, stop.clone()).await?;
    let identity = agent.identity();
    tracing::info!(
        partition = identity.partition,
        pixie = identity.id,
        "serving"
    );
    // Pixie cancels `stop` when one of its tasks fails, which ends `follow` too.
    let follow = mesh::follow(agent.clone(), pixie.desired_sink(), args.control, stop);
    let (served, ()) = tokio::join!(pixie.run(), follow);
    traced.end().await;
    agent.close().await;
    Ok(served?)
}
