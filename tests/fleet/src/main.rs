//! `./dev fleet`: a rehearsal of a whole data centre on this machine.
#![expect(clippy::print_stdout, reason = "a program that talks to its user")]

use std::process::ExitCode;

use anyhow::{Context, Result};
use base_runtime::exit_code;
use base_runtime::shutdown::StopSignals;
use clap::{Parser, Subcommand};
use tests_fleet::{BenchArgs, Options, Output, bench, run};
use tracing_subscriber::EnvFilter;

/// Rehearse a whole data centre on this machine: real control, real agents, simulated hardware.
#[derive(Debug, Parser)]
#[command(
    name = "fleet",
    bin_name = "./dev fleet",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What a machine costs control until it is on offer: ./dev bench fleet
    Bench(BenchArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_log(cli.options.log);
    exit_code(start(&cli))
}

/// Agents log what is news on one machine, which in a fleet is noise.
fn start_log(wanted: bool) {
    let filter = if wanted {
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"))
    } else {
        EnvFilter::new("off")
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}

fn start(cli: &Cli) -> Result<()> {
    let runtime = agents_kit::runtime()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let mut signals = StopSignals::listen()?;
        // Whatever is dropped here takes its processes and directories along.
        tokio::select! {
            done = work(cli) => done,
            signal = signals.recv() => anyhow::bail!("{signal}; everything was taken away"),
        }
    })
}

async fn work(cli: &Cli) -> Result<()> {
    let tell = |line: String| eprintln!("{line}");
    if let Some(Command::Bench(args)) = &cli.command {
        return bench(args, tell, |line| println!("{line}")).await;
    }
    let report = run(&cli.options, tell).await?;
    match cli.options.output {
        Output::Text => println!("{}", report.text()),
        Output::Json => println!("{}", report.json()),
    }
    Ok(())
}
