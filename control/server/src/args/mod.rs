//! Arguments of `metalmeshd`.

mod choices;
mod setup;

use std::path::PathBuf;

use base_runtime::logging::LogFormat;
use clap::{Args, Parser, Subcommand};

use crate::config::Overrides;
use crate::restore::RestoreArgs;

pub(crate) use self::choices::{ReportFormat, SetupCheck};
pub(crate) use self::setup::{InitArgs, JoinArgs, SetupArgs};

/// The control plane of metalmesh.
#[derive(Debug, Parser)]
#[command(name = "metalmeshd", version, args_conflicts_with_subcommands = true)]
pub(crate) struct DaemonArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(subcommand)]
    pub(crate) command: Option<DaemonCommand>,
}

impl DaemonArgs {
    /// The format of the log.
    pub(crate) fn log(&self) -> LogFormat {
        match &self.command {
            Some(DaemonCommand::Init(init)) => init.run.log,
            Some(DaemonCommand::Join(join)) => join.log,
            Some(DaemonCommand::Token(run) | DaemonCommand::Check(run)) => run.log,
            Some(DaemonCommand::Restore(_)) | None => self.run.log,
        }
    }
}

/// A command other than running the node.
#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Set up the first node: check the host, write the configuration file, create the data
    /// directory and its first admin token, then stop.
    ///
    /// With --config FILE that exists the node is set up by it, and nothing is asked. Otherwise the
    /// answers come from --answers FILE or from the terminal, and the file is written.
    Init(Box<InitArgs>),
    /// Join this host to a cluster by the invitation on standard input, then stop.
    ///
    /// `metalmesh cluster invite HOST:PORT` on a running node prints the line to paste here. A join
    /// that failed can be repeated with the same line while it is valid, or with a new one.
    Join(Box<JoinArgs>),
    /// Create a new admin token with the data directory of a node that does not run.
    Token(RunArgs),
    /// Check the configuration, print its faults, and stop.
    Check(RunArgs),
    /// Create a data directory from a backup: a new cluster of one node with the old state.
    Restore(RestoreArgs),
}

/// Flags of running the node, and of the commands on its data directory.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// The configuration file, TOML; see metalmeshd.example.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// One node on loopback for trying out: all defaults, a temporary data directory unless
    /// --data-dir names one, and a context of the command line that is ready for use.
    #[arg(long)]
    pub(crate) dev: bool,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Write the admin token that is created at the first start to this new file (mode 0600).
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The command line's context file that gets the admin token.
    #[arg(long, value_name = "FILE", env = "METALMESH_CONFIG")]
    pub(crate) context_file: Option<PathBuf>,
    /// Name of that context.
    #[arg(long, value_name = "NAME", default_value = "dev")]
    pub(crate) context: String,
    /// Format of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,
}
