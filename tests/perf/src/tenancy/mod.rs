//! Tenancy beside Ironic with MariaDB on this machine, and its parts in this process.
//!
//! `paired` starts both systems with as many nodes, the product as `facade` with Ironic's API, and
//! has the same clients call both in turn (`work`). `decisions` measures Ironic's policy, `claims`
//! the commands of claims among very many hosts (`claim_site`). `report` has the rows.
//!
//! Invariants: both systems get the same calls, as many of them, once they are warm; whatever costs
//! Ironic without being measured is off; every process ends with the bench, however that ends.

mod claim_site;
mod claims;
mod decisions;
mod facade;
mod paired;
mod paired_row;
mod process_row;
mod report;
mod work;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::place::{self, Output};
use report::TenancyReport;

#[derive(Debug, Args)]
pub(crate) struct TenancyArgs {
    /// Numbers of nodes at both systems, one after the other
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "100,1000,5000",
        value_parser = clap::value_parser!(u32).range(100..=50_000)
    )]
    nodes: Vec<u32>,
    /// Rounds of each row; each measures both systems, in another order
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    /// Hosts of the pool that claims choose from
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(5_000..=100_000))]
    hosts: u32,
    /// Measure only this; may be given more than once
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Format of the report
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Where the data lies while it runs
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The product's program
    #[arg(long)]
    metalmeshd: PathBuf,
    /// Python environment with Ironic and uWSGI
    #[arg(long)]
    ironic: PathBuf,
    /// Debian's MariaDB, unpacked
    #[arg(long)]
    mariadb: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Lists of all nodes, beside Ironic
    List,
    /// Nodes that are created, beside Ironic
    Create,
    /// Allocations until they are active, beside Ironic
    Allocate,
    /// Decisions by Ironic's policy
    Policy,
    /// Claims among many hosts
    Claims,
}

/// Measures and reports.
#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) async fn run(args: TenancyArgs) -> Result<()> {
    let place = place::make("tenancy", args.dir.as_deref())?;
    let mut bench = Bench {
        dir: place.path().to_owned(),
        args,
        report: TenancyReport::default(),
        began: Instant::now(),
    };
    bench.run().await?;
    if bench.args.output == Output::Table {
        println!("{}", bench.report.tables());
    }
    println!("{}", bench.report.json());
    let missed = bench.report.missed();
    if missed.is_empty() {
        return Ok(());
    }
    bail!("missed: {}", missed.join("; "))
}

struct Bench {
    args: TenancyArgs,
    dir: PathBuf,
    report: TenancyReport,
    began: Instant,
}

impl Bench {
    async fn run(&mut self) -> Result<()> {
        let paired = [Part::List, Part::Create, Part::Allocate];
        if paired.iter().any(|part| self.wants(*part)) {
            for nodes in self.args.nodes.clone() {
                paired::measure(self, nodes).await?;
            }
        }
        if self.wants(Part::Policy) {
            self.progress("decisions by Ironic's policy");
            self.report.process.push(decisions::measure()?);
        }
        if self.wants(Part::Claims) {
            let hosts = self.args.hosts;
            self.progress(&format!("claims among {hosts} hosts"));
            self.report.process.extend(claims::measure(hosts)?);
        }
        Ok(())
    }

    fn wants(&self, part: Part) -> bool {
        self.args.only.is_empty() || self.args.only.contains(&part)
    }

    fn progress(&self, what: &str) {
        eprintln!("{:>4} s  {what}", self.began.elapsed().as_secs());
    }
}
