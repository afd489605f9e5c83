//! Logs of an agent: to standard error, text or JSON.

use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Begins logging. `METALMESH_LOG` filters as `RUST_LOG` does elsewhere; the default is `info`.
/// Later calls change nothing.
pub fn init(format: LogFormat) {
    let filter =
        EnvFilter::try_from_env("METALMESH_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error says that logging has begun already.
    drop(match format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    });
}
