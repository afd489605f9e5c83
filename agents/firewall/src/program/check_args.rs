use clap::Args;

use super::file_args::FileArgs;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) file: FileArgs,
    /// Check the objects of the file alone, and none that other sources said last.
    #[arg(long)]
    pub(super) file_only: bool,
}
