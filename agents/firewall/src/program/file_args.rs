use std::path::PathBuf;

use clap::Args;

use super::output::OutputFormat;

#[derive(Debug, Args)]
pub(super) struct StateArgs {
    /// Directory of the last good configuration, and of what sources said last.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/lib/metalmesh/firewall"
    )]
    pub(super) state_dir: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// Configuration, YAML.
    #[arg(
        value_name = "FILE",
        default_value = "/etc/firewall-controller/config.yaml"
    )]
    pub(super) config: PathBuf,
    #[command(flatten)]
    pub(super) state: StateArgs,
    /// Format of the result.
    #[arg(short, long, value_enum, default_value = "text")]
    pub(super) output: OutputFormat,
}

#[derive(Debug, Args)]
pub(super) struct CountersArgs {
    /// Format of the result. JSON sorts the counters by what they count.
    #[arg(short, long, value_enum, default_value = "text")]
    pub(super) output: OutputFormat,
    #[command(flatten)]
    pub(super) state: StateArgs,
}
