//! metalmesh, the command line of admins and tenants.
//!
//! `cmd/` parses the command line and has one module for each resource. `global_flags` has the
//! flags of every command, `app` the connection and the lookup of objects by name, `output` prints
//! tables, JSON and YAML, `show` builds the rows of tables, and `explain` turns a refusal of the
//! server into an error with a hint.
//!
//! Invariants:
//! - results go to stdout, progress and errors to stderr, both only through `out`;
//! - a closed pipe ends the program without a message; any other failed write of a result is an
//!   error;
//! - passwords and tokens come from files or prompts, never from arguments;
//! - secrets and keys that a command stores go to new files with mode 0600, or into the context
//!   file;
//! - the runbooks that `metalmesh explain` prints are the sections of pages in `docs/reference`; each
//!   code has one.

#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod out;

mod app;
mod cmd;
mod explain;
mod files;
mod global_flags;
mod jsonpath;
mod kinds;
mod output;
mod show;
mod text;

use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use cmd::CommandLine;

#[tokio::main]
async fn main() -> ExitCode {
    // The TLS provider is chosen before the first connection; a second choice is a bug.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        noteln!("error: a TLS provider is installed already");
        return ExitCode::FAILURE;
    }
    let cli: CommandLine = base_runtime::parse(base_runtime::build_info!());
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
            if let Some(exit) = error.downcast_ref::<cmd::doctor::DoctorExit>() {
                return ExitCode::from(exit.0);
            }
            noteln!("{}", explain::explain(&error));
            ExitCode::FAILURE
        }
    }
}
