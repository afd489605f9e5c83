//! The `metalmesh-firewall` binary: command line and exit code.

use std::process::ExitCode;

use agents_firewall::program::{Cli, carry_out};

fn main() -> ExitCode {
    let cli: Cli = base_runtime::parse(base_runtime::build_info!());
    carry_out(cli).unwrap_or_else(|error| base_runtime::exit_code(Err(error)))
}
