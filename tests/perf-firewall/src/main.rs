//! `./dev bench firewall`: many rules into the kernel beside `nft -f`, one changed rule among them,
//! the time from the agent's source to the kernel, and packets through the table.
//!
//! A crate of its own, without the store: it builds in minutes. `place` is a router in a network
//! namespace with a host on each side; `apply`, `change`, `source` and `forward` measure; `figures`
//! has the bars.
//!
//! Invariants: the program that is measured is the product's; what is compared is measured in turn,
//! in the same run; every namespace and process ends with the bench.

mod apply;
mod arguments;
mod change;
mod figure;
mod figures;
mod forward;
mod place;
mod program;
mod sample;
mod source;
mod traffic;
mod workload;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use base_runtime::exit_code;
use clap::Parser as _;

use arguments::{BenchArgs, Output, Part};
use figures::Report;
use place::Place;

struct Bench {
    args: BenchArgs,
    place: Place,
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

fn main() -> ExitCode {
    exit_code(run(BenchArgs::parse()))
}

#[expect(clippy::print_stdout, reason = "the report is the output")]
fn run(args: BenchArgs) -> Result<()> {
    ensure!(
        nix::unistd::geteuid().is_root(),
        "network namespaces need root"
    );
    let mut bench = Bench {
        args,
        place: Place::new()?,
        report: Report::default(),
        began: Instant::now(),
    };
    if bench.wants(Part::Apply) {
        apply::measure(&mut bench)?;
    }
    if bench.wants(Part::Change) {
        change::measure(&mut bench)?;
    }
    if bench.wants(Part::Source) {
        source::measure(&mut bench)?;
    }
    if bench.wants(Part::Forward) {
        forward::measure(&mut bench)?;
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
