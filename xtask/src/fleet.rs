//! `./dev fleet`: a data centre of simulated hardware against a real control.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::bench::{build, release};

#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// Given to the fleet as they are
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(root: &Path, args: &FleetArgs) -> Result<()> {
    start(root, args.args.iter())
}

/// Does not return unless it fails: signals and the exit code are the fleet's own.
pub(crate) fn start<'a>(root: &Path, args: impl Iterator<Item = &'a OsString>) -> Result<()> {
    build(root, &["fleet", "metalmeshd"])?;
    let program = release(root).join("fleet");
    Err(Command::new(&program).args(args).exec())
        .with_context(|| format!("cannot run {}", program.display()))
}
