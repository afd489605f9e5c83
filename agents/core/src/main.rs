//! The command line of metalmesh-core.
#![expect(clippy::print_stdout, reason = "`key` prints its answer")]

use std::path::PathBuf;
use std::process::ExitCode;

use agents_core::config::Config;
use agents_kit::{AgentArgs, AgentKind, KeyArgs, TpmArgs};
use agents_nos::linux::Linux;
use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use proto_mesh::SwitchDesired;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

#[derive(Debug, Parser)]
#[command(name = "metalmesh-core", version, about = "The agent of one switch.")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Keep the switch as control wants it
    Run {
        #[command(flatten)]
        agent: AgentArgs,
        /// Configuration of the switch, TOML
        #[arg(long, value_name = "FILE", default_value = "/etc/metalmesh/core.toml")]
        config: PathBuf,
    },
    /// Print the fingerprint of this agent's key, for `metalmesh join create`
    Key(KeyArgs),
    /// Print the fingerprint of this host's TPM, for `metalmesh join create --tpm-ek`
    Tpm(TpmArgs),
}

fn main() -> ExitCode {
    agents_kit::install_crypto_provider();
    let result = match Args::parse().command {
        Command::Run { agent, config } => {
            agents_kit::telemetry::init(agent.log);
            let runtime = agents_kit::runtime().build();
            runtime
                .context("cannot start the runtime")
                .and_then(|runtime| runtime.block_on(run(agent, config)))
        }
        Command::Key(key) => key
            .fingerprint()
            .map_err(Into::into)
            .map(|text| println!("{text}")),
        Command::Tpm(tpm) => tpm
            .fingerprint()
            .map_err(Into::into)
            .map(|text| println!("{text}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(error = format!("{error:#}"), "stopped");
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: AgentArgs, config: PathBuf) -> Result<()> {
    let config = Config::load(&config)?;
    let switch = Linux::open(config.linux())?;
    let agent = args.start(AgentKind::Core).await?;
    agent.require_last_good::<SwitchDesired>("switch")?;
    let _metrics = args.serve_metrics(&agent, AgentKind::Core).await?;
    let traced = args.send_spans(&agent, AgentKind::Core)?;
    info!(switch = %agent.identity().id, partition = %agent.identity().partition, "started");
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("signal handler")?;
    let work = agents_core::run(agent.clone(), config, switch, stop.clone());
    tokio::pin!(work);
    tokio::select! {
        () = &mut work => return Ok(()),
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    info!("stopping; the switch forwards on");
    stop.cancel();
    work.await;
    traced.end().await;
    agent.close().await;
    Ok(())
}
