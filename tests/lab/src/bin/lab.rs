//! The lab's helpers alone, for tests that build parts of a lab without `./dev`.

use clap::{Parser, Subcommand};
use tests_lab::helper::Helper;

#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// As `./dev` calls it
    #[command(subcommand)]
    Lab(Helper),
}

fn main() -> anyhow::Result<()> {
    let Command::Lab(helper) = Args::parse().command;
    helper.run()
}
