//! metalmesh, the command line of admins and tenants.
//!
//! `args` is what people type, `cmd/` has one module a resource, `output` prints tables, JSON
//! and YAML, `app` holds the connection and finds things by name, `explain` turns a server's
//! refusal into what to do next. Results go to stdout, progress and errors to stderr, both only
//! through `out`.

#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod out;

mod app;
mod args;
mod cmd;
mod explain;
mod files;
mod jsonpath;
mod kinds;
mod output;
mod show;
mod text;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use args::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    // One TLS provider, chosen before the first connection; a second choice would be an error.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        noteln!("error: TLS was set up twice");
        return ExitCode::FAILURE;
    }
    let cli = Cli::parse();
    let filter = if cli.global.debug {
        "debug,h2=info,hyper=info"
    } else {
        "warn"
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let done = cmd::run(cli).await;
    out::finish();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(exit) = error.downcast_ref::<cmd::doctor::Exit>() {
                return ExitCode::from(exit.0);
            }
            noteln!("{}", explain::explain(&error));
            ExitCode::FAILURE
        }
    }
}
