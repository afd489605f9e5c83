//! `./dev fuzz 60s`: every decoder gets random input for the time that is given.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct FuzzArgs {
    /// How long each target runs: "60s", "10m"
    #[arg(value_parser = milliseconds, default_value = "60s")]
    time: u64,
    /// Only targets whose name begins with this
    target: Option<String>,
}

/// Crates with targets: tests whose names begin with `fuzz_`.
const PACKAGES: [&str; 8] = [
    "tests-fuzz",
    "bmc-redfish",
    "control-api",
    "control-front",
    "control-gate",
    "control-gateway",
    "proto-backup",
    "control-store",
];

pub(crate) fn run(root: &Path, args: &FuzzArgs) -> Result<()> {
    let mut command = crate::cargo();
    command.arg("test");
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    let target = args.target.as_deref().unwrap_or_default();
    let status = command
        .args(["--lib", "--test", "decoders", "--test", "firewall"])
        .args(["--test", "firewall_control", "--test", "sonic"])
        .args(["--test", "oslo", "--"])
        .arg(format!("fuzz_{}", target.trim_start_matches("fuzz_")))
        .env("BOLERO_RANDOM_TEST_TIME_MS", args.time.to_string())
        .env("BOLERO_RANDOM_ITERATIONS", u64::MAX.to_string())
        .current_dir(root)
        .status()
        .context("cannot run cargo test")?;
    if !status.success() {
        bail!("a decoder failed; the input is printed above");
    }
    Ok(())
}

fn milliseconds(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60_000),
        None => (text.strip_suffix('s').unwrap_or(text), 1000),
    };
    let count: u64 = number
        .parse()
        .map_err(|_| format!("\"{text}\" is not a time like 60s"))?;
    count
        .checked_mul(unit)
        .filter(|ms| *ms > 0)
        .ok_or_else(|| "at least 1s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_are_read() {
        assert_eq!(milliseconds("60s"), Ok(60_000));
        assert_eq!(milliseconds("2m"), Ok(120_000));
        assert_eq!(milliseconds("5"), Ok(5000));
        assert!(milliseconds("soon").is_err());
        assert!(milliseconds("0s").is_err());
    }
}
