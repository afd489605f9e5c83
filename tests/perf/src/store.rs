//! The run: systems in turn, rounds, progress.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::certs::Certs;
use crate::cluster::{Cluster, Site, System};
use crate::load::{Load, Work};
use crate::place::{self, Output};
use crate::report::Report;
use crate::sample::Latencies;
use crate::{disk, failover, fanout, inventory, load};

/// etcd's failover is for comparison only; ours has a target.
const ETCD_KILLS_MAX: usize = 5;
/// How long the bare disk is measured each round.
const DISK_TIME: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Rounds; each measures every system, in another order
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    rounds: u8,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// How often our leader is killed; etcd's at most five times
    #[arg(long, default_value_t = 20)]
    kills: usize,
    /// Measure only this; may be given more than once
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Measure only these systems
    #[arg(long, value_enum, value_delimiter = ',', hide = true)]
    systems: Vec<Side>,
    /// What is printed at the end
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// etcd's program
    #[arg(long, default_value = "etcd")]
    etcd: PathBuf,
    /// Where the data lies while it runs: the disk that is measured
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Write,
    Read,
    Watch,
    Failover,
    Inventory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Side {
    Ours,
    EtcdTls,
    EtcdPlain,
}

/// Measures and reports.
#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) async fn run(args: StoreArgs) -> Result<()> {
    let place = place::make("store", args.dir.as_deref())?;
    let site = Site {
        etcd: args.etcd.clone(),
        dir: place.path().to_owned(),
        certs: Certs::make(place.path())?,
    };
    let mut bench = Bench {
        args,
        site,
        report: Report::default(),
        began: Instant::now(),
    };
    bench.run().await?;
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
    args: StoreArgs,
    site: Site,
    report: Report,
    began: Instant,
}

impl Bench {
    async fn run(&mut self) -> Result<()> {
        if self.wants(Part::Inventory) {
            self.inventory().await?;
        }
        let clustered = [Part::Write, Part::Read, Part::Watch, Part::Failover];
        if clustered.iter().any(|part| self.wants(*part)) {
            self.clusters().await?;
        }
        Ok(())
    }

    fn wants(&self, part: Part) -> bool {
        self.args.only.is_empty() || self.args.only.contains(&part)
    }

    fn compares(&self, system: System) -> bool {
        let side = match system {
            System::Ours => Side::Ours,
            System::EtcdTls => Side::EtcdTls,
            System::EtcdPlain => Side::EtcdPlain,
        };
        self.args.systems.is_empty() || self.args.systems.contains(&side)
    }

    fn progress(&self, what: &str) {
        eprintln!("{:>4} s  {what}", self.began.elapsed().as_secs());
    }

    async fn inventory(&mut self) -> Result<()> {
        self.progress("making 100,000 machines");
        let measured = inventory::measure(&self.site).await;
        let mut measured = measured.context("a store of many machines")?;
        self.progress(&format!(
            "restarted in {:.1} s, listed {} machines in {} KiB",
            measured.restart_s,
            measured.listed,
            measured.bytes >> 10
        ));
        let longest = measured.lists.quantile_us(1.0) / 1e3;
        let ours = System::Ours;
        self.report.add(ours, "restart_s", measured.restart_s);
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let cpu_ms = measured.list_cpu_us as f64 / 1e3;
        self.report.add(ours, "list_cpu_ms", cpu_ms);
        self.report
            .add(ours, "list_p50_ms", measured.lists.quantile_us(0.5) / 1e3);
        self.report.add(ours, "list_max_ms", longest);
        self.report
            .add(ours, "inventory_rss_mib", mib(measured.rss_kib));
        Ok(())
    }

    async fn clusters(&mut self) -> Result<()> {
        let mut clusters = Vec::new();
        for system in System::ALL {
            if self.compares(system) {
                self.progress(&format!("starting three nodes: {}", system.name()));
                clusters.push(Cluster::start(&self.site, system).await?);
            }
        }
        for cluster in &mut clusters {
            let idle = mib(cluster.rss_kib()?);
            self.report.add(cluster.system, "rss_idle_mib", idle);
            load::fill(cluster).await?;
        }
        for round in 0..self.args.rounds {
            // Whoever is first in one round is last in the next.
            clusters.rotate_left(1);
            self.progress(&format!("round {} of {}", round + 1, self.args.rounds));
            self.round(&mut clusters).await?;
        }
        for cluster in &mut clusters {
            let after = mib(cluster.rss_kib()?);
            self.report.add(cluster.system, "rss_after_mib", after);
        }
        if self.wants(Part::Failover) {
            for cluster in &mut clusters {
                self.failover(cluster).await?;
            }
        }
        Ok(())
    }

    /// Measures each system in turn, so that what is compared was measured in the same minute.
    async fn round(&mut self, clusters: &mut [Cluster]) -> Result<()> {
        let dir = self.site.dir.clone();
        let syncs = tokio::task::spawn_blocking(move || disk::syncs(&dir, DISK_TIME));
        let mut syncs = syncs.await??;
        for (name, share) in [("sync_p50_us", 0.5), ("sync_p99_us", 0.99)] {
            self.report
                .add(System::Ours, name, syncs.quantile_us(share));
        }
        let time = Duration::from_secs(self.args.seconds.into());
        if self.wants(Part::Write) {
            for clients in [1, 64, 256] {
                for cluster in &mut *clusters {
                    let load = load::run(cluster, Work::Write, clients, time).await?;
                    self.wrote(cluster.system, clients, load);
                }
            }
        }
        if self.wants(Part::Read) {
            for cluster in &mut *clusters {
                let load = load::run(cluster, Work::Read, 64, time).await?;
                self.read(cluster.system, load);
            }
        }
        if self.wants(Part::Watch) {
            for cluster in &mut *clusters {
                let delays = fanout::run(cluster, time).await?;
                self.watched(cluster.system, delays);
            }
        }
        Ok(())
    }

    fn wrote(&mut self, system: System, clients: usize, mut load: Load) {
        let (per_s, cpu) = (load.per_s, load.cpu_us);
        let (p50, p99) = (
            load.latencies.quantile_us(0.5),
            load.latencies.quantile_us(0.99),
        );
        self.progress(&format!(
            "{:<10} {clients:>3} clients  {per_s:>7.0} writes/s  p50 {p50:.0} us  p99 {p99:.0} us  CPU {cpu:.1} us",
            system.name()
        ));
        let figures: &[(&'static str, f64)] = match clients {
            1 => &[("write_1_p50_us", p50), ("write_1_p99_us", p99)],
            64 => &[
                ("write_64_per_s", per_s),
                ("write_64_p99_us", p99),
                ("write_64_cpu_us", cpu),
            ],
            _ => &[
                ("write_256_per_s", per_s),
                ("write_256_p99_us", p99),
                ("write_256_cpu_us", cpu),
            ],
        };
        for (name, number) in figures {
            self.report.add(system, name, *number);
        }
    }

    fn read(&mut self, system: System, mut load: Load) {
        let (per_s, cpu) = (load.per_s, load.cpu_us);
        let p99 = load.latencies.quantile_us(0.99);
        self.progress(&format!(
            "{:<10}  64 clients  {per_s:>7.0} reads/s   p99 {p99:.0} us  CPU {cpu:.1} us",
            system.name()
        ));
        self.report.add(system, "read_64_per_s", per_s);
        self.report.add(system, "read_64_p99_us", p99);
        self.report.add(system, "read_64_cpu_us", cpu);
    }

    fn watched(&mut self, system: System, mut delays: Latencies) {
        let (p50, p99) = (
            delays.quantile_us(0.5) / 1e3,
            delays.quantile_us(0.99) / 1e3,
        );
        self.progress(&format!(
            "{:<10} 1,000 watchers  p50 {p50:.2} ms  p99 {p99:.2} ms",
            system.name()
        ));
        self.report.add(system, "watch_p50_ms", p50);
        self.report.add(system, "watch_p99_ms", p99);
    }

    async fn failover(&mut self, cluster: &mut Cluster) -> Result<()> {
        let system = cluster.system;
        let kills = match system {
            System::Ours => self.args.kills,
            _ => self.args.kills.min(ETCD_KILLS_MAX),
        };
        let (mut times, mut acknowledged, mut lost) = (Latencies::default(), 0, 0);
        for kill in 0..kills {
            let outage = failover::run(cluster, kill).await?;
            self.progress(&format!(
                "{:<10} kill {:>2}: {:.2} s, {} acknowledged, {} lost",
                system.name(),
                kill + 1,
                outage.time.as_secs_f64(),
                outage.acknowledged,
                outage.lost
            ));
            times.add(outage.time);
            acknowledged += outage.acknowledged;
            lost += outage.lost;
        }
        if kills == 0 {
            return Ok(());
        }
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let counts = [kills as f64, acknowledged as f64, lost as f64];
        for (name, number) in [
            ("failover_p50_s", times.quantile_us(0.5) / 1e6),
            ("failover_p99_s", times.quantile_us(0.99) / 1e6),
            ("failover_kills", counts[0]),
            ("failover_acknowledged", counts[1]),
            ("failover_lost", counts[2]),
        ] {
            self.report.add(system, name, number);
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
