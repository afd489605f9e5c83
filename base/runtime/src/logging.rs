//! The log of a program: on standard error, text or JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Filters as `RUST_LOG` does elsewhere.
const FILTER_VARIABLE: &str = "METALMESH_LOG";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log. `METALMESH_LOG` says what is logged; `filter` does when it is not set. Later
/// calls change nothing.
pub fn start(format: LogFormat, filter: &str) {
    let filter =
        EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new(filter));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // An error says that logging has begun already.
    drop(match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    });
}
