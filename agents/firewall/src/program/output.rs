use std::io::{ErrorKind, Write as _};

use anyhow::Result;
use serde::Serialize;

/// Format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OutputFormat {
    /// Lines for people.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// Prints a result. A reader that stopped reading is no error.
pub(super) fn print(
    format: OutputFormat,
    value: &impl Serialize,
    text: impl FnOnce() -> Vec<String>,
) -> Result<()> {
    let mut content = match format {
        OutputFormat::Text => text().join("\n"),
        OutputFormat::Json => serde_json::to_string_pretty(value)?,
    };
    content.push('\n');
    match std::io::stdout().write_all(content.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
