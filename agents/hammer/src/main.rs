//! metalmesh-hammer: `/init` of the boot image, and the agent of installed machines.

use std::process::ExitCode;

use agents_hammer::cmdline::Cmdline;
use agents_hammer::install::ignition::{self, RunIgnitionArgs};
use agents_hammer::phone_home::{self, PhoneHomeArgs};
use agents_hammer::{init, life, log};
use clap::{Parser, Subcommand};

/// Inventory, wipe and installation on a network-booted machine.
#[derive(Debug, Parser)]
#[command(name = "metalmesh-hammer", version)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Be process 1 of the boot image
    Init,
    /// Join, register and carry out orders, until one of them is to reboot
    Run,
    /// Tell control from an installed system that it runs
    PhoneHome(PhoneHomeArgs),
    /// Run an image's Ignition in its system, with the config from standard input; the installer
    /// starts this as the first process of namespaces of its own
    RunIgnition(RunIgnitionArgs),
}

fn main() -> ExitCode {
    // The kernel starts /init without arguments that are ours; the first process of a namespace
    // has them.
    let is_ours = std::env::args()
        .nth(1)
        .is_some_and(|word| word == "run-ignition");
    if std::process::id() == 1 && !is_ours {
        return init_process();
    }
    match Args::parse().task {
        Task::Init => init_process(),
        Task::Run => run(),
        Task::PhoneHome(args) => {
            log::start(false);
            finish(block_on(phone_home::run(&args)))
        }
        Task::RunIgnition(args) => ignition::run_inside(&args),
    }
}

fn init_process() -> ExitCode {
    let reason = init::run();
    log::start(false);
    tracing::error!(reason, "process 1 has nothing left to do");
    loop {
        // Ending would be a kernel panic.
        std::thread::park();
    }
}

fn run() -> ExitCode {
    let text = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let cmdline = Cmdline::parse(&text);
    let tail = log::start(cmdline.debug);
    finish(block_on(life::run(&cmdline, &tail)).map(drop))
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    agents_kit::runtime()
        .worker_threads(2)
        .build()?
        .block_on(work)
}

fn finish(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "hammer gives up");
            ExitCode::FAILURE
        }
    }
}
