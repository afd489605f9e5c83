//! Ports of switches: from an API call until control has the verified reports of both leaves, and
//! what a change of one port, or of all, costs the agent of a large switch.
//!
//! `calls` has the product's own `metalmeshd` and two agents (`leaf`), over a rack that `fill`
//! makes; `agent` has one agent with the orders of a large switch (`orders`) from a control of the
//! bench's own (`control`); `routes` is FRR's part of a change; `desired` is control's part of an
//! allocation in a large partition; `figures` has the bars.
//!
//! Invariants: agents are processes of their own with the allocator and the runtime of
//! `metalmesh-core`, and with its reconciliation; their switches are in memory, because the host's
//! kernel has no VRFs.

mod agent;
mod calls;
mod control;
mod desired;
mod figures;
mod fill;
mod leaf;
mod orders;
mod routes;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::place::{self, Output};
use figures::Report;

pub(crate) use fill::{SwitchFillArgs as FillArgs, run as fill};

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// Machines that are handed over and released, one after the other
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=500))]
    machines: u32,
    /// Changes of one port
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    moves: u32,
    /// Measure only this; may be given more than once
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Output at the end
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Where the data lies while it runs
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The product's program
    #[arg(long)]
    metalmeshd: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// From the call to both leaves
    Calls,
    /// One agent with 64 ports and 500 VRFs
    Agent,
    /// FRR with 500 VRFs; needs root and Debian's frr
    Frr,
    /// Desired state of 100 leaves and 5,000 machines
    Desired,
}

/// Measures and reports.
#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) async fn run(args: SwitchArgs) -> Result<()> {
    let place = place::make("switch", args.dir.as_deref())?;
    let mut bench = Bench {
        dir: place.path().to_owned(),
        args,
        report: Report::default(),
        began: Instant::now(),
    };
    if bench.wants(Part::Calls) {
        calls::measure(&mut bench).await?;
    }
    if bench.wants(Part::Agent) {
        agent::measure(&mut bench).await?;
    }
    if bench.wants(Part::Frr) {
        routes::measure(&mut bench).await?;
    }
    if bench.wants(Part::Desired) {
        desired::measure(&mut bench)?;
    }
    if bench.args.output == Output::Table {
        println!("{}", bench.report.table());
    }
    println!("{}", bench.report.json());
    let missed = bench.report.missed();
    if missed.is_empty() {
        return Ok(());
    }
    bail!("missed: {}", missed.join("; "))
}

struct Bench {
    args: SwitchArgs,
    dir: PathBuf,
    report: Report,
    began: Instant,
}

impl Bench {
    fn wants(&self, part: Part) -> bool {
        self.args.only.is_empty() || self.args.only.contains(&part)
    }

    fn progress(&self, what: &str) {
        eprintln!("{:>4} s  {what}", self.began.elapsed().as_secs());
    }
}
