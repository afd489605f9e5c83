use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use clap::Args;

use super::file_args::StateArgs;
use super::output::OutputFormat;
use crate::drops::{DropEvent, socket};

#[derive(Debug, Args)]
pub(super) struct DropsArgs {
    /// Format of the lines.
    #[arg(short, long, value_enum, default_value = "text")]
    output: OutputFormat,
    #[command(flatten)]
    state: StateArgs,
    /// Go on with those to come.
    #[arg(short, long)]
    follow: bool,
}

/// Prints the packet log of the agent that runs, a line for each event; with JSON too, so that it can
/// be followed.
pub(super) async fn list_drops(args: DropsArgs) -> Result<()> {
    let format = args.output;
    let take = |event: DropEvent| {
        let line = match (format, &event) {
            (OutputFormat::Json, event) => serde_json::to_string(event)?,
            (OutputFormat::Text, DropEvent::Packet(record)) => record.line(),
            (OutputFormat::Text, DropEvent::Lost { lost }) => format!("{lost} lost"),
        };
        writeln!(io::stdout(), "{line}")
    };
    match socket::read(&args.state.state_dir, args.follow, take).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        read => read.context("cannot read the packet log; does the agent run?"),
    }
}
