//! `./dev bench fleet`: what a machine costs control until it is on offer, with more and more of
//! them.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::delays::Delays;
use crate::options::{Options, Output};
use crate::report::Report;
use crate::run::run;

/// Machines a minute that one processor must have the time for.
const CAPACITY_MIN: f64 = 900.0;
/// What a machine may cost with the most of them, of what it costs with [`BASE`].
const GROWTH_MAX: f64 = 1.10;
const BASE: usize = 3000;
/// Memory of control with [`RSS_MACHINES`] machines or fewer, MiB; with more in proportion.
const RSS_MAX_MIB: f64 = 1024.0;
const RSS_MACHINES: usize = 10_000;
/// Machines of a partition.
const PARTITION: usize = 1000;
/// How long control is looked at when nothing happens, seconds.
const IDLE_S: u64 = 10;

/// What is measured.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// How many machines, one run after the other
    #[arg(long, value_delimiter = ',', default_value = "1000,3000,13500")]
    machines: Vec<usize>,
    /// Machines switched on in a second; 0 is all at once
    #[arg(long, value_name = "PER_SECOND", default_value_t = 60)]
    rate: u64,
    #[command(flatten)]
    delays: Delays,
    /// How to print the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
    /// The control node's program; if absent the one that was built with this
    #[arg(long, value_name = "FILE")]
    metalmeshd: Option<PathBuf>,
}

/// A figure, what it must be, and whether it is.
struct Verdict {
    name: &'static str,
    title: String,
    value: f64,
    wanted: String,
    met: bool,
}

/// Measures; `tell` gets lines of progress, `print` the result.
///
/// # Errors
/// A run failed, or a figure is not what it must be.
pub async fn bench(args: &BenchArgs, tell: impl Fn(String), print: impl Fn(String)) -> Result<()> {
    ensure!(
        !args.machines.is_empty(),
        "--machines: name at least one number"
    );
    let mut reports = Vec::new();
    for machines in &args.machines {
        tell(format!("{machines} machines"));
        let report = run(&args.options(*machines), &tell).await;
        reports.push(report.with_context(|| format!("{machines} machines"))?);
    }
    let verdicts = judge(&reports);
    if args.output == Output::Text {
        print(format!(
            "simulated hardware: {}; {} a second",
            args.delays.text(),
            args.rate
        ));
        print(table(&reports));
        for verdict in &verdicts {
            let met = if verdict.met { "met" } else { "MISSED" };
            let Verdict {
                title,
                value,
                wanted,
                ..
            } = verdict;
            print(format!("{title}: {value:.2}, wanted {wanted}: {met}"));
        }
    }
    print(line(args, &reports, &verdicts).to_string());
    let missed: Vec<_> = verdicts
        .iter()
        .filter(|v| !v.met)
        .map(|v| v.title.as_str())
        .collect();
    ensure!(missed.is_empty(), "missed: {}", missed.join("; "));
    Ok(())
}

impl BenchArgs {
    fn options(&self, machines: usize) -> Options {
        Options {
            machines,
            partitions: machines.div_ceil(PARTITION).max(1),
            tenants_percent: 0,
            ipmi_percent: 25,
            bmc_nonce: false,
            rate: self.rate,
            chaos: false,
            seed: None,
            chaos_every_ms: 0,
            idle_s: IDLE_S,
            delays: self.delays,
            patience_s: 300,
            output: self.output,
            metalmeshd: self.metalmeshd.clone(),
            otlp: None,
            log: false,
        }
    }
}

fn judge(reports: &[Report]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let capacity = reports
        .iter()
        .map(Report::capacity_per_minute)
        .fold(f64::MAX, f64::min);
    verdicts.push(Verdict {
        name: "capacity_per_minute",
        title: "machines a minute that one processor has the time for, at least".into(),
        value: capacity,
        wanted: format!(">= {CAPACITY_MIN}"),
        met: capacity >= CAPACITY_MIN,
    });
    let Some(last) = reports.iter().max_by_key(|report| report.machines) else {
        return verdicts;
    };
    if let Some(base) = reports.iter().find(|report| report.machines == BASE)
        && last.machines > BASE
    {
        let growth = last.cpu_ms_per_machine() / base.cpu_ms_per_machine();
        verdicts.push(Verdict {
            name: "growth",
            title: format!("CPU a machine with {} of that with {BASE}", last.machines),
            value: growth,
            wanted: format!("<= {GROWTH_MAX}"),
            met: growth <= GROWTH_MAX,
        });
    }
    let rss_max = rss_max_mib(last.machines);
    verdicts.push(Verdict {
        name: "rss_peak_mib",
        title: format!("memory of control with {}, MiB", last.machines),
        value: last.control.rss_peak_mib,
        wanted: format!("<= {rss_max:.0}"),
        met: last.control.rss_peak_mib <= rss_max,
    });
    verdicts
}

#[expect(clippy::cast_precision_loss, reason = "machines are few")]
fn rss_max_mib(machines: usize) -> f64 {
    RSS_MAX_MIB * machines.max(RSS_MACHINES) as f64 / RSS_MACHINES as f64
}

fn table(reports: &[Report]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header([
        "machines",
        "partitions",
        "leaves",
        "ready/min",
        "CPU, ms each",
        "one CPU: /min",
        "p50, ms",
        "p99, ms",
        "idle, % CPU",
        "memory, MiB",
    ]);
    for report in reports {
        let ready = report.steps.get("power on to ready");
        let [p50, p99] = ready.map_or([0.0, 0.0], |ready| [ready.p50_ms, ready.p99_ms]);
        table.add_row([
            report.machines.to_string(),
            report.partitions.to_string(),
            report.leaves.to_string(),
            format!("{:.0}", report.ready_per_minute()),
            format!("{:.2}", report.cpu_ms_per_machine()),
            format!("{:.0}", report.capacity_per_minute()),
            format!("{p50:.0}"),
            format!("{p99:.0}"),
            format!("{:.1}", report.idle_percent()),
            format!("{:.0}", report.control.rss_peak_mib),
        ]);
    }
    for column in 0..10 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

fn line(args: &BenchArgs, reports: &[Report], verdicts: &[Verdict]) -> Value {
    let figure = |verdict: &Verdict| {
        let value = json!({
            "value": verdict.value, "wanted": verdict.wanted, "met": verdict.met,
        });
        (verdict.name.to_owned(), value)
    };
    let figures: serde_json::Map<_, _> = verdicts.iter().map(figure).collect();
    let runs: Vec<Value> = reports.iter().map(Report::json).collect();
    json!({ "bench": "fleet", "rate_per_s": args.rate, "figures": figures, "runs": runs })
}
