//! The program behind `./dev sim`.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use control_store::sim::Bug;

use crate::run::{Report, Snapshots, run};
use crate::tenants;

/// A run that takes longer than this is named while it runs.
const SLOW: Duration = Duration::from_secs(60);

/// Run a simulated cluster with faults, one run for each seed.
#[derive(Debug, Parser)]
#[command(name = "./dev sim")]
pub struct Args {
    /// How many seeds to run
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Run this seed only, and print all that happens
    #[arg(long)]
    seed: Option<u64>,
    /// The first seed; without it the seeds are fresh ones
    #[arg(long)]
    from: Option<u64>,
    /// Runs at the same time; as many as there are processors if absent
    #[arg(long)]
    jobs: Option<usize>,
    /// Put this bug back
    #[arg(long)]
    bug: Option<Bug>,
    /// With --seed: the log of the stores, too
    #[arg(long)]
    log: bool,
    /// Run a site with a hundred tenants instead of a store with a few keys
    #[arg(long, conflicts_with = "bug")]
    tenants: bool,
    /// With --tenants: minutes of faults, in virtual time
    #[arg(long, default_value_t = 60)]
    minutes: u64,
}

/// Runs what was asked for.
///
/// # Errors
/// When a run failed.
pub fn main(args: &Args) -> Result<()> {
    if let Some(seed) = args.seed {
        return one(args, seed);
    }
    let from = args.from.unwrap_or_else(fresh);
    let jobs = args
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let began = Instant::now();
    eprintln!(
        "seeds {from} to {}, {jobs} at a time",
        from + args.seeds - 1
    );
    if args.tenants {
        let reports = tenants::run_many(from..from + args.seeds, args.minutes, jobs);
        return verdict(&reports);
    }
    let sum = many(from..from + args.seeds, jobs, args.bug);
    let seconds = began.elapsed().as_secs_f64();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} seeds, {} failed, {} writes, {} reads, {} watch events, {} faults, {} KiB of snapshots \
         received and {} KiB kept over {} crashes of receivers, {:.0} virtual s in {seconds:.0} s",
        args.seeds,
        sum.failed.len(),
        sum.writes,
        sum.reads,
        sum.events,
        sum.harms,
        sum.snapshots.received >> 10,
        sum.snapshots.kept >> 10,
        sum.snapshots.interrupted,
        sum.virtual_ms as f64 / 1000.0,
    )?;
    for report in &sum.failed {
        writeln!(out, "REPLAY: {}", report.replay())?;
    }
    if sum.failed.is_empty() {
        return Ok(());
    }
    bail!("{} of {} seeds failed", sum.failed.len(), args.seeds)
}

/// The verdict on runs with tenants.
fn verdict(reports: &[tenants::TenantReport]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for report in reports {
        writeln!(out, "{report:?}")?;
    }
    let failed = reports.iter().filter(|report| report.failure.is_some());
    let replays: Vec<String> = failed.map(tenants::TenantReport::replay).collect();
    for replay in &replays {
        writeln!(out, "REPLAY: {replay}")?;
    }
    if replays.is_empty() {
        return Ok(());
    }
    bail!("{} of {} seeds failed", replays.len(), reports.len())
}

fn one(args: &Args, seed: u64) -> Result<()> {
    if args.log {
        tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_writer(std::io::stderr)
            .without_time()
            .init();
    }
    if args.tenants {
        return verdict(&[tenants::run(seed, args.minutes, true)]);
    }
    let report = run(seed, args.bug, true);
    writeln!(std::io::stdout(), "{report:#?}")?;
    match &report.failure {
        None => Ok(()),
        Some(failure) => bail!("{failure}\nREPLAY: {}", report.replay()),
    }
}

/// A seed that nobody has chosen; small, so that it is easy to say.
pub fn fresh() -> u64 {
    u64::from(uuid::Uuid::new_v4().as_fields().0)
}

/// What many runs gave.
#[derive(Debug, Default)]
pub struct Sum {
    /// Runs that failed.
    pub failed: Vec<Report>,
    writes: usize,
    reads: u64,
    events: u64,
    harms: u64,
    snapshots: Snapshots,
    virtual_ms: u64,
}

/// Runs `seeds`, `jobs` at a time, and tells of failures as they come.
pub fn many(seeds: std::ops::Range<u64>, jobs: usize, bug: Option<Bug>) -> Sum {
    let first = seeds.start;
    let reports = at_once(seeds, jobs, |seed| {
        let began = Instant::now();
        let report = run(seed, bug, false);
        tell(&report, began.elapsed(), seed - first + 1);
        report
    });
    let mut sum = Sum::default();
    for report in reports {
        sum.add(report);
    }
    sum
}

/// Runs `seeds`, `jobs` at a time, each on a thread of its own. The results are in no order.
pub(crate) fn at_once<T: Send>(
    seeds: std::ops::Range<u64>,
    jobs: usize,
    run: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let result = run(seed);
                    let mut results = results
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    results.push(result);
                }
            });
        }
    });
    results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn tell(report: &Report, took: Duration, number: u64) {
    const EVERY: u64 = 25;
    if let Some(failure) = &report.failure {
        eprintln!("seed {} FAILED: {failure}", report.seed);
        eprintln!("REPLAY: {}", report.replay());
    } else if took > SLOW {
        eprintln!("seed {} took {} s", report.seed, took.as_secs());
    } else if number.is_multiple_of(EVERY) {
        eprintln!("{number} seeds");
    }
}

impl Sum {
    fn add(&mut self, report: Report) {
        self.writes += report.writes;
        self.reads += report.reads;
        self.events += report.events;
        self.harms += report.harms;
        self.snapshots.received += report.snapshots.received;
        self.snapshots.kept += report.snapshots.kept;
        self.snapshots.interrupted += report.snapshots.interrupted;
        self.virtual_ms += report.virtual_ms;
        if report.failure.is_some() {
            self.failed.push(report);
        }
    }
}
