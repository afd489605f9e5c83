//! metalmeshd of the next feature level, for tests of clusters in which programs of two levels run.

use std::process::ExitCode;

fn main() -> ExitCode {
    control_server::main(base_runtime::build_info!())
}
