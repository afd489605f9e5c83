//! Flags that every command takes.

use std::path::PathBuf;

use clap::Args;

use crate::output::OutputFormat;

/// Flags of every command. Each works before and after the command's name.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct GlobalFlags {
    /// Output format: table, wide, json, yaml or jsonpath=TEMPLATE.
    ///
    /// A template is text with JSON paths in braces. It is filled once for each object, on a line
    /// of its own: jsonpath='{.uuid} {.allocation.networks[*].ips[0]}'.
    #[arg(
        short,
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub(crate) output: OutputFormat,
    /// Context file [default: METALMESH_CONFIG, or ~/.config/metalmesh/config.yaml].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Use this context instead of the current one.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Use this server instead of the context's.
    ///
    /// A context belongs to one server: its token is not sent to another server, that is to another
    /// scheme, host or port. METALMESH_TOKEN_FILE names the file with the token for that server.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) api_url: Option<String>,
    /// Use this project, by id or name, instead of the context's default project.
    #[arg(short, long, global = true, value_name = "PROJECT")]
    pub(crate) project: Option<String>,
    /// Act as an administrator, across all projects.
    #[arg(short = 'A', long, global = true, conflicts_with = "project")]
    pub(crate) all: bool,
    /// Change nothing. The server checks the call and answers as it would without this flag.
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    /// Log requests and connections to stderr.
    #[arg(long, global = true)]
    pub(crate) debug: bool,
}
