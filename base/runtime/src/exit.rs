use std::fmt::Display;
use std::process::ExitCode;

/// The exit code of a program. An error is printed to standard error in its alternate form, which
/// for `anyhow` contains the causes.
pub fn exit_code<E: Display>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
