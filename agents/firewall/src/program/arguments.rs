use agents_update::{PROBE_COMMAND, ProbeProgramArgs};
use base_runtime::logging::LogFormat;
use clap::{Parser, Subcommand};

use super::check_args::CheckArgs;
use super::command_args::{ApplyArgs, ExplainArgs, RunArgs};
use super::drops::DropsArgs;
use super::file_args::{CountersArgs, FileArgs, StateArgs};
use super::update::UpdateCommand;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "metalmesh-firewall",
    version,
    about = "The rules of one firewall, from their sources into the kernel."
)]
pub struct Cli {
    /// Format of the log, on standard error.
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub(super) log: LogFormat,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Keep the kernel's rules as the configuration says.
    Run(RunArgs),
    /// Check a configuration, and each of its objects.
    Check(CheckArgs),
    /// Apply a configuration once.
    Apply(ApplyArgs),
    /// Confirm the configuration that `apply --confirm-within` has applied.
    Confirm(StateArgs),
    /// Say which rule decides about a new flow.
    Explain(ExplainArgs),
    /// List the rules of a configuration, operator rules first.
    Rules(FileArgs),
    /// List the last dropped packets, and those that are accepted with a log.
    Drops(DropsArgs),
    /// List the kernel's counters.
    Counters(CountersArgs),
    /// Show how self-update goes, or try a failed version again.
    #[command(subcommand)]
    Update(UpdateCommand),
    /// Run `check` of a new program as nobody. Self-update does so.
    #[command(name = PROBE_COMMAND, hide = true)]
    ProbeProgram(ProbeProgramArgs),
}
