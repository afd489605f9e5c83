//! The `metalmesh-firewall` binary: command line and exit code.

use std::process::ExitCode;

use agents_firewall::program::{Cli, carry_out};
use clap::Parser as _;

fn main() -> ExitCode {
    carry_out(Cli::parse()).unwrap_or_else(|error| base_runtime::exit_code(Err(error)))
}
