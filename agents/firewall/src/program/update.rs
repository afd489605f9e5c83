use agents_update::UpdateFiles;
use anyhow::{Context as _, Result};
use clap::Subcommand;

use super::file_args::StateArgs;
use super::output::{OutputFormat, print};

#[derive(Debug, Subcommand)]
pub(super) enum UpdateCommand {
    /// Show the version that runs, the wanted one, the phase, the digest and the last error.
    Status {
        #[command(flatten)]
        state: StateArgs,
        /// Format of the result.
        #[arg(short, long, value_enum, default_value = "text")]
        output: OutputFormat,
    },
    /// Forget failed releases, so that the wanted one is tried again.
    Retry(StateArgs),
}

/// Carries out a command about self-update.
///
/// # Errors
/// There is no state directory, it cannot be opened, or the agent never ran.
pub(super) fn update(command: &UpdateCommand) -> Result<()> {
    let files = |args: &StateArgs| UpdateFiles::existing(&args.state_dir);
    match command {
        UpdateCommand::Retry(state) => Ok(files(state)?.ask_retry()?),
        UpdateCommand::Status { state, output } => {
            let status = files(state)?.status()?;
            let status = status.context("there is no status of updates; does the agent run?")?;
            print(*output, &status, || status.lines())
        }
    }
}
