//! The `metalmesh-pixie` binary: command line, wiring, signals.

use std::path::PathBuf;
use std::sync::Arc;

use agents_kit::{AgentArgs, AgentKind, KeyArgs, TpmArgs, telemetry};
use anyhow::Context;
use clap::{Parser, Subcommand};
use pixie_server::{Config, Pixie, mesh};
use proto_mesh::BootDesired;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Boots the machines of one partition from the network.
#[derive(Debug, Parser)]
#[command(name = "metalmesh-pixie", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve DHCP, TFTP and HTTP.
    Run {
        /// Configuration file, TOML.
        #[arg(long, value_name = "FILE", env = "METALMESH_PIXIE_CONFIG")]
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
    let stop = CancellationToken::new();
    let agent = tokio::select! {
        agent = args.start(AgentKind::Pixie) => agent?,
        signal = terminated() => return signal,
    };
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
    let follow = mesh::follow(
        agent.clone(),
        pixie.desired_sink(),
        args.control,
        stop.clone(),
    );
    let until_signal = async {
        let signal = terminated().await;
        stop.cancel();
        signal
    };
    let (served, (), signal) = tokio::join!(pixie.run(), follow, async {
        tokio::select! {
            signal = until_signal => signal,
            () = stop.cancelled() => Ok(()),
        }
    });
    traced.end().await;
    agent.close().await;
    served?;
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
