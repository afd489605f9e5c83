//! The `metalmesh-core` binary: command line and wiring.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agents_core::config::{Config, SwitchOs};
use agents_kit::{AgentArgs, AgentKind};
use agents_nos::Nos;
use agents_nos::linux::Linux;
use agents_nos::sonic::Sonic;
use agents_update::mesh_agent::{AgentUpdate, MeshCommand, MeshProgram, MeshRun, beside_update};
use clap::Parser;
use proto_mesh::SwitchDesired;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// This program, as its releases name it.
static PROGRAM: MeshProgram = MeshProgram {
    name: "metalmesh-core",
    argument: c"metalmesh-core",
    unhealthy: "it had no session with control, or did not find the switch as desired,",
    check: Config::check,
};

#[derive(Debug, Parser)]
#[command(name = "metalmesh-core", version, about = "The agent of one switch.")]
struct Cli {
    #[command(subcommand)]
    command: MeshCommand<Run>,
}

/// Keep the switch in the state that control desires.
#[derive(Clone, Debug, clap::Args)]
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
    let mut config = Config::load(&run.config)?;
    let control = run.agent.control_addresses()?;
    config.control = agents_core::control_listeners(&control).await;
    match config.nos {
        SwitchOs::Linux => serve(Linux::open(config.linux())?, config, run, stop).await,
        SwitchOs::Sonic => serve(Sonic::open(config.sonic()), config, run, stop).await,
    }
}

async fn serve(
    switch: impl Nos + 'static,
    config: Config,
    run: Run,
    stop: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let args = &run.agent;
    let agent = tokio::select! {
        agent = args.start(AgentKind::Core) => agent?,
        () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
    };
    agent.require_last_good::<SwitchDesired>("switch")?;
    let update = AgentUpdate::open(&PROGRAM, &agent, &args.state_dir, &run.config)?;
    let metrics = AgentUpdate::metrics(update.as_ref());
    let _metrics = args.serve_metrics(&agent, AgentKind::Core, metrics).await?;
    let traced = args.send_spans(&agent, AgentKind::Core)?;
    info!(switch = %agent.identity().id, partition = %agent.identity().partition, "started");
    let (verified_in, verified) = watch::channel(false);
    let work = agents_core::run_watched(agent.clone(), config, switch, verified_in, stop.clone());
    let ailment = || {
        let is_verified = *verified.borrow();
        (!is_verified).then(|| "no pass has found the switch as desired yet".to_owned())
    };
    let ((), code) = beside_update(update, ailment, stop, work).await;
    info!("stopped; the switch keeps forwarding");
    traced.end().await;
    agent.close().await;
    Ok(code)
}
