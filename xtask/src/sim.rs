//! `./dev sim`: simulated clusters with faults, one run for each seed.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// How many seeds to run; 100 if absent, and 4 with --tenants
    #[arg(long)]
    seeds: Option<u64>,
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
    /// A hundred tenants who claim, use, overrun their leases and release, with the agents of their
    /// machines, on a cluster with faults; instead of a store with a few keys
    #[arg(long, conflicts_with = "bug")]
    tenants: bool,
    /// With --tenants: minutes of faults, in virtual time
    #[arg(long, default_value_t = 60, requires = "tenants")]
    minutes: u64,
}

/// Seeds of a run that names none: of stores with a few keys, and of sites.
const SEEDS: u64 = 100;
const SITE_SEEDS: u64 = 4;

pub(crate) fn run(root: &Path, args: &SimArgs) -> Result<()> {
    let mut command = crate::cargo();
    command.args(["run", "--quiet", "--profile", "sim"]).args([
        "--package",
        "tests-sim",
        "--bin",
        "tests-sim",
        "--",
    ]);
    let default = if args.tenants { SITE_SEEDS } else { SEEDS };
    match args.seed {
        Some(seed) => command.args(["--seed", &seed.to_string()]),
        None => command.args(["--seeds", &args.seeds.unwrap_or(default).to_string()]),
    };
    if args.tenants {
        command.args(["--tenants", "--minutes", &args.minutes.to_string()]);
    }
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
