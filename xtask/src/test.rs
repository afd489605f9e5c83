//! `./dev test`: every test of the workspace, then the lab in its short form.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Leave the lab out
    #[arg(long)]
    no_lab: bool,
    /// Passed on to cargo test, after `--`
    #[arg(last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(root: &Path, args: &TestArgs) -> Result<()> {
    let started = Instant::now();
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(&args.cargo)
        .current_dir(root);
    let status = command.status().context("cannot run cargo test")?;
    eprintln!("tests: {} s", started.elapsed().as_secs());
    if !status.success() {
        bail!("tests failed");
    }
    if args.no_lab {
        eprintln!("lab: skipped, --no-lab was given");
        return Ok(());
    }
    let status = Command::new(root.join("dev"))
        .args(["lab", "--short"])
        .current_dir(root)
        .status()
        .context("cannot run ./dev lab --short")?;
    if !status.success() {
        bail!("the lab failed");
    }
    eprintln!("tests and lab: {} s", started.elapsed().as_secs());
    Ok(())
}
