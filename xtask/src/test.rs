//! `./dev test`: every test of the workspace on this machine, then the lab.
//!
//! Tests that boot machines need what machines boot and install: it is made first, and named to
//! them by environment variables, without which they say that they are skipped.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::lab;

/// The main job on one machine, then the faults that only a whole data centre shows: what can go
/// wrong on a machine alone is driven by the tests of hammer, more quickly.
const LAB: [&str; 4] = [
    "lab",
    "--short",
    "--drill",
    "unknown-partition,main-job,cut-short,bmc-silent,control-killed,tickets",
];

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Leave out the lab and what boots machines
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
    if args.no_lab {
        eprintln!("machines: skipped, --no-lab was given");
    } else {
        let machines = lab::boot_and_image()?;
        command
            .env("METALMESH_BOOT_DIR", machines.boot)
            .env("METALMESH_IMAGE_DIR", machines.image);
    }
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
        .args(LAB)
        .current_dir(root)
        .status()
        .context("cannot run ./dev lab")?;
    if !status.success() {
        bail!("the lab failed");
    }
    eprintln!("tests and lab: {} s", started.elapsed().as_secs());
    Ok(())
}
