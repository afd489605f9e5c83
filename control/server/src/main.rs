//! See the library of this crate, which is the program.

use std::process::ExitCode;

fn main() -> ExitCode {
    control_server::main()
}
