//! `./dev fleet`: a rehearsal of a whole data centre on this machine.
#![expect(clippy::print_stdout, reason = "a program that talks to its user")]

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use tests_fleet::{Options, Output};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Rehearse a whole data centre on this machine: real control, real agents, simulated hardware.
#[derive(Debug, Parser)]
#[command(name = "fleet", bin_name = "./dev fleet")]
struct Cli {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let options = Cli::parse().options;
    start_log(options.log);
    match start(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
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

fn start(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let report = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // Whatever is dropped here takes its processes and directories along.
        tokio::select! {
            done = tests_fleet::run(options, |line| eprintln!("{line}")) => done,
            _ = interrupt.recv() => anyhow::bail!("interrupted; everything was taken away"),
            _ = terminate.recv() => anyhow::bail!("stopped; everything was taken away"),
        }
    })?;
    match options.output {
        Output::Text => println!("{}", report.text()),
        Output::Json => println!("{}", report.json()),
    }
    Ok(())
}
