//! `./dev sim`: simulated clusters with faults, one run for each seed.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// How many seeds to run
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Run this seed only, and print all that happens in it
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// The first of the seeds; fresh ones if absent
    #[arg(long)]
    from: Option<u64>,
    /// Runs at the same time; one for each processor if absent
    #[arg(long)]
    jobs: Option<usize>,
    /// Put a bug back, to see that it is found; tests/robustness/README.md names them
    #[arg(long)]
    bug: Option<String>,
    /// With --seed: print what the stores log, too; RUST_LOG says how much
    #[arg(long)]
    log: bool,
}

pub(crate) fn run(root: &Path, args: &SimArgs) -> Result<()> {
    let mut command = crate::cargo();
    command.args(["run", "--quiet", "--profile", "sim"]).args([
        "--package",
        "tests-sim",
        "--features",
        "sim",
        "--bin",
        "tests-sim",
        "--",
    ]);
    match args.seed {
        Some(seed) => command.args(["--seed", &seed.to_string()]),
        None => command.args(["--seeds", &args.seeds.to_string()]),
    };
    for (name, value) in [
        ("--from", args.from.map(|from| from.to_string())),
        ("--jobs", args.jobs.map(|jobs| jobs.to_string())),
        ("--bug", args.bug.clone()),
    ] {
        if let Some(value) = value {
            command.args([name, &value]);
        }
    }
    if args.log {
        command.arg("--log");
    }
    let status = command.current_dir(root).status();
    if !status.context("cannot run the simulation")?.success() {
        bail!("the simulation failed; the REPLAY line above shows it again");
    }
    Ok(())
}
