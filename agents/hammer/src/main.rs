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
    /// Run as process 1 of the boot image
    Init,
    /// Join, register and carry out orders until control orders a reboot
    Run,
    /// Report to control from an installed system that it runs
    PhoneHome(PhoneHomeArgs),
    /// Run an image's Ignition inside the new system, with the config from standard input; the
    /// installer starts this as process 1 of new namespaces
    RunIgnition(RunIgnitionArgs),
}

fn main() -> ExitCode {
    // Both `/init` and the Ignition runner are process 1, the one of the machine, the other of a
    // PID namespace. The process id alone would start a second installer inside the namespace; the
    // kernel never passes our subcommand to /init.
    let is_ours = std::env::args()
        .nth(1)
        .is_some_and(|word| word == "run-ignition");
    if std::process::id() == 1 && !is_ours {
        return init_process();
    }
    let args: Args = base_runtime::parse(base_runtime::build_info!());
    match args.task {
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
    tracing::error!(reason, "process 1 cannot reboot the machine");
    loop {
        // The end of process 1 is a kernel panic, which would scroll the reason off the console.
        std::thread::park();
    }
}

fn run() -> ExitCode {
    // An unreadable command line counts as empty: `life::run` then fails with the missing
    // `metalmesh.pixie=`, after the log has started.
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
            tracing::error!(error = format!("{error:#}"), "hammer failed");
            ExitCode::FAILURE
        }
    }
}
