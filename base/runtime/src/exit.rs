use std::fmt::Display;
use std::process::ExitCode;

/// The exit code of a program. An error is printed on standard error, with its causes when its
/// alternate form names them, as that of `anyhow` does.
pub fn exit_code<E: Display>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
