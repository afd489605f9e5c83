use agents_update::{UpdateFiles, UpdateStatus};
use anyhow::{Context as _, Result};
use clap::Subcommand;
use proto_firewall::printable;

use super::file_args::StateArgs;
use super::output::{OutputFormat, print};
use crate::state::FirewallState;

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
/// The state directory cannot be opened, or the agent never ran.
pub(super) fn update(command: &UpdateCommand) -> Result<()> {
    let files = |args: &StateArgs| {
        let state = FirewallState::open(&args.state_dir)?;
        anyhow::Ok(UpdateFiles::new(state.sealed().clone()))
    };
    match command {
        UpdateCommand::Retry(state) => Ok(files(state)?.ask_retry()?),
        UpdateCommand::Status { state, output } => {
            let status = files(state)?.status()?;
            let status = status.context("there is no status of updates; does the agent run?")?;
            print(*output, &status, || lines(&status))
        }
    }
}

fn lines(status: &UpdateStatus) -> Vec<String> {
    let wanted = status.wanted.as_ref().map(ToString::to_string);
    let mut lines = vec![
        format!("version: {}", status.version),
        format!("wanted:  {}", wanted.unwrap_or_else(|| "-".to_owned())),
        format!("phase:   {}", status.phase.name()),
    ];
    if let Some(digest) = &status.head_digest {
        lines.push(format!("digest:  {digest}"));
    }
    if !status.last_error.is_empty() {
        lines.push(format!("error:   {}", printable(&status.last_error)));
    }
    for failed in &status.failed {
        let reason = printable(&failed.reason);
        let (version, attempts) = (&failed.version, failed.attempts);
        let digest = failed.head_digest.as_ref();
        let digest = digest.map(|digest| format!(" ({digest})"));
        let digest = digest.unwrap_or_default();
        lines.push(format!(
            "failed:  {version}{digest}, {attempts} attempts: {reason}"
        ));
    }
    lines
}
