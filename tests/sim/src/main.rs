//! Runs the simulation; see `./dev sim --help`.

use anyhow::Result;
use clap::Parser;

fn main() -> Result<()> {
    tests_sim::cli::main(&tests_sim::cli::Args::parse())
}
