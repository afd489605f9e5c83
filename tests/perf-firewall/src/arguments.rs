use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Measures the firewall agent beside nft, and packets through its rules. Needs root and nft.
#[derive(Debug, Parser)]
pub(crate) struct BenchArgs {
    /// Permits of the tenant
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) permits: u32,
    /// Rounds of everything that is measured in turn
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Changes of one rule
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) changes: u32,
    /// Milliseconds of traffic in each round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub(crate) traffic_ms: u64,
    /// Measure only this; may be given more than once
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<Part>,
    /// Output at the end
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// The agent's program
    #[arg(long)]
    pub(crate) firewall: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// All permits at once
    Apply,
    /// One of them
    Change,
    /// From the agent's file to the kernel
    Source,
    /// Packets
    Forward,
}

/// The text at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table, then one line of JSON
    Table,
    /// The line of JSON alone
    Json,
}
