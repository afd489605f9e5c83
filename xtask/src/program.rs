//! `./dev control` and `./dev cli`: our own programs, built and run with what they are given.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ProgramArgs {
    /// Given to the program as they are
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// One control node on loopback: `metalmeshd --dev`.
pub(crate) fn control(root: &Path, args: &ProgramArgs) -> Result<()> {
    become_program(root, "control-server", &["--dev"], args)
}

/// The command line: `metalmesh`.
pub(crate) fn cli(root: &Path, args: &ProgramArgs) -> Result<()> {
    become_program(root, "control-ctl", &[], args)
}

/// Does not return unless it fails: signals and the exit code are the program's own.
fn become_program(root: &Path, package: &str, first: &[&str], args: &ProgramArgs) -> Result<()> {
    let manifest = root.join("Cargo.toml");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["run", "--quiet", "--package", package, "--manifest-path"])
        .arg(manifest);
    command.arg("--").args(first).args(&args.args);
    Err(command.exec()).with_context(|| format!("cannot run {package}"))
}
