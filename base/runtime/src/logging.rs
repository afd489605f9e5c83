//! The log of a program: on standard error, text or JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Environment variable with the log filter, in the syntax of `RUST_LOG`.
const FILTER_VARIABLE: &str = "METALMESH_LOG";

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log. `filter` applies if `METALMESH_LOG` is unset or not valid. Later calls have no
/// effect.
pub fn start(format: LogFormat, filter: &str) {
    let filter =
        EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new(filter));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // The only error is that a log was started before: by a test, or by a program that embeds this.
    drop(match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    });
}
