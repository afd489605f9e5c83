//! metalmeshd: one node of the control plane.
//!
//! `config` reads and checks what the operator wants, `node` opens the store and wires the parts
//! (API on TCP, mesh on UDP, duties of the leader), `bootstrap` hands the first admin token over
//! through a file, this file knows the commands and the signals.
//!
//! Nothing secret is printed or logged; when the node serves, one line "ready" goes to stdout.

#![allow(
    clippy::print_stdout,
    reason = "the ready line and the paths are for the caller"
)]

mod bootstrap;
mod config;
mod files;
mod join;
mod login;
mod metrics;
mod node;
mod peers;
mod premises;
mod restore;
mod tls;
mod traces;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use config::{Config, Overrides};

/// The control plane of metalmesh.
#[derive(Debug, Parser)]
#[command(name = "metalmeshd", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    run: Run,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the data directory and its first admin token, then stop.
    Init(Run),
    /// Make a new admin token with the data directory of a node that does not run.
    Token(Run),
    /// Read the configuration, say what is wrong with it, and stop.
    Check(Run),
    /// Make a data directory out of a backup: a new cluster of one node with the old state.
    Restore(restore::Restore),
}

#[derive(Debug, Clone, Args)]
struct Run {
    /// The configuration file, TOML; see metalmeshd.example.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One node on loopback for trying out: all defaults, a temporary data directory unless
    /// --data-dir names one, and a context of the command line that is ready for use.
    #[arg(long)]
    dev: bool,
    #[command(flatten)]
    overrides: Overrides,
    /// Write the admin token that is made at the first start to this new file (mode 0600).
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The command line's context file that gets the admin token.
    #[arg(long, value_name = "FILE", env = "METALMESH_CONFIG")]
    context_file: Option<PathBuf>,
    /// Name of that context.
    #[arg(long, value_name = "NAME", default_value = "dev")]
    context: String,
    /// How to log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// The program: reads its arguments, runs, and says how it ended.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let run = match &cli.command {
        Some(Command::Init(run) | Command::Token(run) | Command::Check(run)) => run,
        Some(Command::Restore(_)) | None => &cli.run,
    };
    start_log(run.log);
    match start(&cli, run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(cli: &Cli, run: &Run) -> Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("TLS was set up twice"))?;
    if let Some(Command::Restore(restore)) = &cli.command {
        return runtime()?.block_on(restore::run(restore));
    }
    let config = Config::resolve(run.config.as_deref(), run.dev, &run.overrides)?;
    if matches!(cli.command, Some(Command::Check(_))) {
        println!("the configuration is good");
        return Ok(());
    }
    runtime()?.block_on(async {
        match &cli.command {
            Some(Command::Init(_)) => node::init(config, run, stop_signal()?).await,
            Some(Command::Token(_)) => node::token(config, run, stop_signal()?).await,
            _ => node::run(config, run, stop_signal()?).await,
        }
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    proto_link::runtime()
        .build()
        .context("cannot start the runtime")
}

/// Cancelled by SIGTERM or SIGINT.
fn stop_signal() -> Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut term = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut int = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let cancel = stop.clone();
    #[expect(clippy::disallowed_methods, reason = "lives as long as the process")]
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => tracing::info!("SIGTERM, draining"),
            _ = int.recv() => tracing::info!("SIGINT, draining"),
        }
        cancel.cancel();
        // Who asks twice does not want to wait.
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        std::process::exit(1);
    });
    Ok(stop)
}

fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_env("METALMESH_LOG")
        .unwrap_or_else(|_| EnvFilter::new("info,openraft=error,h2=warn"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
