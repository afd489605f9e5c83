//! The `metalmesh-bmc` binary: command line, wiring, signals.

use std::path::PathBuf;

use agents_kit::{AgentArgs, AgentKind, KeyArgs, StateDir, TpmArgs, telemetry};
use anyhow::Context;
use bmc_agent::{BmcAgent, Config};
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Finds and drives the BMCs of one partition.
#[derive(Debug, Parser)]
#[command(name = "metalmesh-bmc", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read BMCs and carry out control's orders.
    Run {
        /// Configuration file, TOML.
        #[arg(long, value_name = "FILE", env = "METALMESH_BMC_CONFIG")]
        config: PathBuf,
        #[command(flatten)]
        agent: AgentArgs,
    },
    /// Print the fingerprint of this agent's key, to bind a join ticket to it.
    Key(KeyArgs),
    /// Print the fingerprint of this host's TPM, for `metalmesh join create --tpm-ek`.
    Tpm(TpmArgs),
}

fn main() -> anyhow::Result<()> {
    agents_kit::install_crypto_provider();
    match Cli::parse().command {
        Command::Run { config, agent } => {
            agents_kit::runtime().build()?.block_on(run(config, agent))
        }
        #[expect(clippy::print_stdout, reason = "it is what the command is for")]
        Command::Key(args) => {
            println!("{}", args.fingerprint()?);
            Ok(())
        }
        #[expect(clippy::print_stdout, reason = "it is what the command is for")]
        Command::Tpm(args) => {
            println!("{}", args.fingerprint()?);
            Ok(())
        }
    }
}

async fn run(path: PathBuf, args: AgentArgs) -> anyhow::Result<()> {
    telemetry::init(args.log);
    let config =
        Config::read(&path).with_context(|| format!("configuration {}", path.display()))?;
    let agent = tokio::select! {
        agent = args.start(AgentKind::Bmc) => agent?,
        signal = terminated() => return signal,
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
    let stop = CancellationToken::new();
    let ((), signal) = tokio::join!(bmc.run(stop.clone()), async {
        let signal = terminated().await;
        stop.cancel();
        signal
    });
    traced.end().await;
    agent.close().await;
    signal
}

async fn terminated() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
