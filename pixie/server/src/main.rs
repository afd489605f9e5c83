//! The `metalmesh-pixie` binary: command line and wiring.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use agents_kit::{AgentArgs, AgentKind};
use agents_update::mesh_agent::{AgentUpdate, MeshCommand, MeshProgram, MeshRun, beside_update};
use anyhow::Context;
use base_runtime::Chain;
use clap::Parser;
use pixie_server::{Config, Pixie, mesh};
use proto_mesh::BootDesired;
use tokio_util::sync::CancellationToken;

/// This program, as its releases name it.
static PROGRAM: MeshProgram = MeshProgram {
    name: "metalmesh-pixie",
    argument: c"metalmesh-pixie",
    unhealthy: "it had no session with control, or did not answer on its own sockets,",
    check: |text| {
        let read = Config::parse(text);
        read.map(drop).map_err(|error| Chain(&error).to_string())
    },
};

/// Boots the machines of one partition from the network.
#[derive(Debug, Parser)]
#[command(name = "metalmesh-pixie", version)]
struct Cli {
    #[command(subcommand)]
    command: MeshCommand<Run>,
}

/// Serve DHCP, TFTP and HTTP.
#[derive(Clone, Debug, clap::Args)]
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
    // Read before the agent joins: a ticket must not be spent on a start that fails.
    let config =
        Config::read(&file).with_context(|| format!("configuration {}", file.display()))?;
    let agent = tokio::select! {
        agent = args.start(AgentKind::Pixie) => agent?,
        () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
    };
    // Checked before any socket is open: an offline pixie without a desired state would keep every
    // machine waiting for an installer.
    agent.require_last_good::<BootDesired>("boot")?;
    let update = AgentUpdate::open(&PROGRAM, &agent, &args.state_dir, &file)?;
    let metrics = AgentUpdate::metrics(update.as_ref());
    let _metrics = args
        .serve_metrics(&agent, AgentKind::Pixie, metrics)
        .await?;
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
    let follow = mesh::follow(
        agent.clone(),
        pixie.desired_sink(),
        args.control,
        stop.clone(),
    );
    let probe = pixie.probe();
    let ailment = || probe.ailment();
    let work = async { tokio::join!(pixie.run(), follow) };
    let ((served, ()), code) = beside_update(update, ailment, stop, work).await;
    traced.end().await;
    agent.close().await;
    served?;
    Ok(code)
}
