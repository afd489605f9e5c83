//! The API beside Ironic's: both on this machine, asked by the same client, in turn.
//!
//! `ours` is the product's `metalmeshd` over a directory that `seed` filled; `ironic` is Ironic
//! with `mariadb`, loaded with as many nodes, and called by `rest`. `work` asks, `figures` tells.
//!
//! Invariants: nothing is set that the product does not set; whatever costs Ironic without being
//! measured is off; every process ends with the bench, however that ends.

mod figures;
pub(crate) mod http;
pub(crate) mod ironic;
mod mariadb;
pub(crate) mod ours;
pub(crate) mod rest;
pub(crate) mod seed;
mod work;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use crate::callers::{self, Measured};
use crate::place::{self, Output};
use crate::procfs;
use figures::{Column, Report};
use ironic::{Ironic, Parts};
use ours::Ours;
use work::{Asks, Work};

/// Free machines of the node that the large one is held against.
const FEW: u32 = 100;
/// Allocations of a block, of which there are several a side, in turn.
const BLOCK: usize = 10;
/// Such blocks; together no more than half of the few machines.
const BLOCKS: usize = 5;
/// Clients that work together.
const MANY_CLIENTS: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    /// Rounds; each measures both systems, in another order
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    /// Machines of ours and nodes of Ironic beside each other
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(200..=50_000))]
    machines: u32,
    /// Machines of the large node of ours
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(200..=200_000))]
    large: u32,
    /// Networks of ours
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(20..=10_000))]
    networks: u32,
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
    /// Python environment with Ironic and uWSGI
    #[arg(long)]
    ironic: PathBuf,
    /// Debian's MariaDB, unpacked
    #[arg(long)]
    mariadb: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    List,
    Get,
    Allocate,
    Create,
    /// Ours with more machines
    Large,
    /// Allocations with many free machines beside few
    Free,
}

/// What a round asks: the part, the work, how many clients, how often ours, how often Ironic.
type Step = (Part, Work, usize, usize, usize);

/// Measures and reports.
#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) async fn run(args: ApiArgs) -> Result<()> {
    let place = place::make("api", args.dir.as_deref())?;
    let mut bench = Bench {
        dir: place.path().to_owned(),
        args,
        report: Report::default(),
        began: Instant::now(),
    };
    bench.run().await?;
    let (machines, large) = (bench.args.machines, bench.args.large);
    if bench.args.output == Output::Table {
        println!("{}", bench.report.tables(machines, large, FEW));
    }
    println!("{}", bench.report.json(machines, large));
    let missed = bench.report.missed();
    if missed.is_empty() {
        return Ok(());
    }
    bail!("missed: {}", missed.join("; "))
}

struct Bench {
    args: ApiArgs,
    dir: PathBuf,
    report: Report,
    began: Instant,
}

impl Bench {
    async fn run(&mut self) -> Result<()> {
        let paired = [Part::List, Part::Get, Part::Allocate, Part::Create];
        if paired.iter().any(|part| self.wants(*part)) {
            self.paired().await?;
        }
        if self.wants(Part::Large) || self.wants(Part::Free) {
            self.larger().await?;
        }
        Ok(())
    }

    fn wants(&self, part: Part) -> bool {
        self.args.only.is_empty() || self.args.only.contains(&part)
    }

    fn progress(&self, what: &str) {
        eprintln!("{:>4} s  {what}", self.began.elapsed().as_secs());
    }

    async fn start(&self, name: &str, machines: u32) -> Result<Ours> {
        let networks = self.args.networks;
        self.progress(&format!("ours: {machines} machines, {networks} networks"));
        let dir = self.dir.join(name);
        let ours = Ours::start(&self.args.metalmeshd, dir, machines, networks).await;
        ours.with_context(|| format!("metalmeshd with {machines} machines"))
    }

    /// Both systems, in turn.
    async fn paired(&mut self) -> Result<()> {
        let machines = self.args.machines;
        let ours = self.start("ours", machines).await?;
        self.progress(&format!("Ironic: {machines} nodes"));
        let parts = Parts {
            venv: self.args.ironic.clone(),
            mariadb: self.args.mariadb.clone(),
        };
        let ironic = Ironic::start(&parts, &self.dir.join("ironic"), machines).await;
        let ironic = ironic.context("Ironic")?;
        let mut sides = [
            (
                Column::Ours,
                Asks::Ours(ours.asks().clone()),
                vec![ours.pid()],
            ),
            (
                Column::Ironic,
                Asks::Ironic(ironic.rest().clone()),
                ironic.pids().to_vec(),
            ),
        ];
        for (column, asks, pids) in &sides {
            let listed = asks.listed().await?;
            ensure!(
                listed == machines.min(1000) as usize,
                "{column:?} lists {listed} machines"
            );
            let loaded = callers::rss_mib(pids)?;
            self.report.add(*column, "rss_loaded_mib", loaded);
        }
        for round in 0..self.args.rounds {
            self.progress(&format!("round {} of {}", round + 1, self.args.rounds));
            // Whoever is first in one round is last in the next.
            sides.rotate_left(1);
            for step in self.steps(machines) {
                for (column, asks, pids) in &sides {
                    self.step(*column, asks, pids, step).await?;
                }
            }
        }
        for (column, _, pids) in &sides {
            let after = callers::rss_mib(pids)?;
            self.progress(&format!("{column:?}: {after:.0} MiB at the end"));
            self.report.add(*column, "rss_after_mib", after);
        }
        Ok(())
    }

    /// Ours is asked so often that a p99 is more than its worst call.
    fn steps(&self, machines: u32) -> Vec<Step> {
        let most = |share: u32, most: usize| most.min((machines / share) as usize);
        let steps = [
            (Part::List, Work::List, 1, 200, 30),
            (Part::List, Work::ListDetail, 1, 100, 10),
            (Part::Get, Work::Get, 1, 500, 100),
            (Part::Allocate, Work::Allocate, 1, most(20, 60), 4),
            (
                Part::Allocate,
                Work::Allocate,
                MANY_CLIENTS,
                most(15, 320),
                16,
            ),
            (Part::Create, Work::Create, 1, 300, 100),
            (Part::Create, Work::Create, MANY_CLIENTS, 320, 96),
        ];
        let wanted = steps.into_iter().filter(|step| self.wants(step.0));
        wanted.collect()
    }

    async fn step(&mut self, column: Column, asks: &Asks, pids: &[u32], step: Step) -> Result<()> {
        let (_, work, clients, ours, ironic) = step;
        let calls = if column == Column::Ironic {
            ironic
        } else {
            ours
        };
        let measured = callers::run(asks, pids, work, clients, calls).await;
        let measured = measured.with_context(|| format!("{column:?}: {work:?}"))?;
        self.take(column, work, clients, measured);
        Ok(())
    }

    fn take(&mut self, column: Column, work: Work, clients: usize, mut measured: Measured) {
        let p50 = measured.latencies.quantile_us(0.5) / 1e3;
        let p99 = measured.latencies.quantile_us(0.99) / 1e3;
        let (per_s, cpu) = (measured.per_s, measured.cpu_us / 1e3);
        let failed = match measured.failed {
            0 => String::new(),
            failed => format!("  {failed} failed"),
        };
        self.progress(&format!(
            "{column:<6?} {work:<10?} {clients:>2} clients  {per_s:>8.1}/s  p50 {p50:.2} ms  \
             p99 {p99:.2} ms  CPU {cpu:.2} ms{failed}"
        ));
        let names = figures::names(work, clients);
        for (name, number) in names.into_iter().zip([per_s, p50, p99, cpu]) {
            if let Some(name) = name {
                self.report.add(column, name, number);
            }
        }
    }

    /// Ours with more machines, and what allocations cost there beside few.
    async fn larger(&mut self) -> Result<()> {
        let large = self.start("large", self.args.large).await?;
        let (asks, pids) = (Asks::Ours(large.asks().clone()), [large.pid()]);
        let loaded = callers::rss_mib(&pids)?;
        self.report.add(Column::Large, "rss_loaded_mib", loaded);
        if self.wants(Part::Free) {
            let few = self.start("few", FEW).await?;
            self.free(&few, &large).await?;
        }
        if !self.wants(Part::Large) {
            return Ok(());
        }
        for _ in 0..self.args.rounds {
            for step in self.steps(self.args.large) {
                self.step(Column::Large, &asks, &pids, step).await?;
            }
        }
        let after = callers::rss_mib(&pids)?;
        self.report.add(Column::Large, "rss_after_mib", after);
        Ok(())
    }

    /// Blocks of allocations in turn, by one client.
    async fn free(&mut self, few: &Ours, large: &Ours) -> Result<()> {
        let sides = [(Column::Ours, few), (Column::Large, large)];
        for block in 0..=BLOCKS {
            for (column, ours) in sides {
                let asks = Asks::Ours(ours.asks().clone());
                let pids = [ours.pid()];
                let before = procfs::run_ns(ours.pid())?;
                let measured = callers::run(&asks, &pids, Work::Allocate, 1, BLOCK).await?;
                let cpu_us = (procfs::run_ns(ours.pid())? - before) / 1000 / BLOCK as u64;
                let (mut latencies, failed) = (measured.latencies, measured.failed);
                ensure!(failed == 0, "{failed} allocations failed");
                // The first block warms both up.
                if block > 0 {
                    let p50 = latencies.quantile_us(0.5);
                    self.report.add(column, "free_p50_us", p50);
                    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
                    self.report.add(column, "free_cpu_us", cpu_us as f64);
                }
            }
        }
        Ok(())
    }
}
