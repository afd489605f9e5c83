//! The `main` that every agent shares.

use std::fmt::Display;
use std::future::Future;
use std::io;
use std::process::{ExitCode, Termination};

use base_runtime::{exit_code, logging, shutdown};
use tokio_util::sync::CancellationToken;

use crate::args::AgentArgs;
use crate::error::KitError;
use crate::key_args::{KeyArgs, TpmArgs};

/// Log filter of an agent whose command line and environment name none.
const LOG_FILTER: &str = "info";

/// The subcommands of every agent. `R` has the arguments and the description of `run`.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum AgentCommand<R: clap::Args> {
    // A doc comment here would hide the description of `R` in the help.
    Run(R),
    /// Print the fingerprint of this agent's key, to bind a join ticket to it.
    Key(KeyArgs),
    /// Print the fingerprint of this host's TPM, for `metalmesh join create --tpm-ek`.
    Tpm(TpmArgs),
}

/// Carries out a command. `run` is called on a runtime for sessions, after the log has started,
/// with a token that SIGTERM and SIGINT cancel. What it returns is the exit code.
pub fn main<R, W, F, T, E>(command: AgentCommand<R>, run: W) -> ExitCode
where
    R: clap::Args + AsRef<AgentArgs>,
    W: FnOnce(R, CancellationToken) -> F,
    F: Future<Output = Result<T, E>>,
    T: Termination,
    E: From<io::Error> + From<KitError> + Display,
{
    crate::install_crypto_provider();
    carry_out(command, run).unwrap_or_else(|error| exit_code(Err(error)))
}

fn carry_out<R, W, F, T, E>(command: AgentCommand<R>, run: W) -> Result<ExitCode, E>
where
    R: clap::Args + AsRef<AgentArgs>,
    W: FnOnce(R, CancellationToken) -> F,
    F: Future<Output = Result<T, E>>,
    T: Termination,
    E: From<io::Error> + From<KitError>,
{
    match command {
        AgentCommand::Run(args) => {
            logging::start(args.as_ref().log, LOG_FILTER);
            let done = proto_link::runtime()
                .build()?
                .block_on(async { run(args, shutdown::stop_on_signal()?).await })?;
            Ok(done.report())
        }
        AgentCommand::Key(args) => {
            print(&args.fingerprint()?);
            Ok(ExitCode::SUCCESS)
        }
        AgentCommand::Tpm(args) => {
            print(&args.fingerprint()?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[expect(clippy::print_stdout, reason = "the command's output")]
fn print(fingerprint: &str) {
    println!("{fingerprint}");
}
