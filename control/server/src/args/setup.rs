//! Flags of the first start: `metalmeshd init` and `metalmeshd join`.

use std::net::SocketAddr;
use std::path::PathBuf;

use base_runtime::logging::LogFormat;
use clap::Args;

use super::RunArgs;
use super::choices::{ReportFormat, SetupCheck};
use crate::config::Overrides;

/// Flags that `init` and `join` share.
#[derive(Debug, Clone, Args)]
pub(crate) struct SetupArgs {
    /// File with the answers, TOML; nothing is asked then. Its fields are in the guide
    /// docs/how-to/run-three-nodes.md.
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,
    /// Replace an existing configuration file.
    #[arg(long)]
    pub(crate) force: bool,
    /// Check the host and print the configuration file, but write and start nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Format of the report on standard output.
    #[arg(short, long, value_enum, ignore_case = true, default_value_t = ReportFormat::Text)]
    pub(crate) output: ReportFormat,
    /// Go on although this check fails; repeatable.
    #[arg(long, value_enum, ignore_case = true, value_name = "CHECK")]
    pub(crate) accept: Vec<SetupCheck>,
    /// User that the service runs as: it gets the data directory, and its group may read the
    /// configuration. Only root can give files away [default: metalmesh, if there is such a user].
    #[arg(long, value_name = "USER")]
    pub(crate) service_user: Option<String>,
}

/// Flags of `metalmeshd init`.
#[derive(Debug, Clone, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

/// Flags of `metalmeshd join`. The invitation comes from standard input: arguments are seen by every
/// user of the host.
#[derive(Debug, Clone, Args)]
pub(crate) struct JoinArgs {
    /// The configuration file, which is written unless it exists
    /// [default: /etc/metalmesh/metalmeshd.toml].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// UDP address for the other control nodes.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peers_listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Format of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,
}
