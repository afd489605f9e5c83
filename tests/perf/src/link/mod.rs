//! The agents' link beside tonic over TLS and TCP, and ten thousand agents of one `metalmeshd`.
//!
//! `serve` is the servers, `ask` the agents' side, `paired` measures both in turn; `fill` makes
//! a data centre whose switches' agents have joined, `agents` connects them all to the product's
//! own node; `datagram` is what a bare one takes; `figures` tells.
//!
//! Invariants: both links have the same service, the same messages and certificates on both
//! sides; client and server share the machine; nothing is set that the product does not set.

mod agents;
mod ask;
mod ca;
mod datagram;
mod figures;
mod fill;
mod paired;
mod serve;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::place::{self, Output};
use figures::Report;

pub(crate) use ca::{Ca, TRUST_DOMAIN};
pub(crate) use datagram::round_trips;
pub(crate) use fill::{Joins, credential, fill};
pub(crate) use serve::{ServerArgs, run as serve};

#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// Rounds; each measures both links, in another order
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    /// Sessions that stay open
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=18_000))]
    sessions: u32,
    /// Seconds of each row of a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Measure only this; may be given more than once
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// What is printed at the end
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
    /// Full handshakes
    Handshakes,
    /// Small calls
    Calls,
    /// Memory of idle sessions
    Memory,
    /// Agents of one metalmeshd
    Agents,
}

/// Measures and reports.
#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) async fn run(args: LinkArgs) -> Result<()> {
    open_files(u64::from(args.sessions) + 2000)?;
    let place = place::make("link", args.dir.as_deref())?;
    let mut bench = Bench {
        dir: place.path().to_owned(),
        args,
        report: Report::default(),
        began: Instant::now(),
    };
    if bench.wants(Part::Handshakes) || bench.wants(Part::Calls) {
        paired::rounds(&mut bench).await?;
    }
    if bench.wants(Part::Memory) {
        paired::memory(&mut bench).await?;
    }
    if bench.wants(Part::Agents) {
        agents::measure(&mut bench).await?;
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
    args: LinkArgs,
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

/// Each session of an agent has a socket of its own.
fn open_files(wanted: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= wanted {
        return Ok(());
    }
    if hard < wanted {
        bail!(
            "{wanted} open files are needed, {hard} are allowed; raise ulimit -Hn, or give fewer --sessions"
        );
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)?)
}
