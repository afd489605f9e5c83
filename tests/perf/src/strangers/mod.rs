//! A tenant's calls beside strangers: the tenant's p99 before, during and after each flood.
//!
//! `floods` is what strangers do, `tenant` asks and measures. The server is the product's
//! `metalmeshd`, with nothing set that the product does not set.
//!
//! Invariants: everything stays on loopback; each flood is bounded in count and time, and over
//! before the next begins.

mod floods;
mod tenant;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::place::{self, Output};
use floods::Flood;
use tenant::{Measured, Tenant};

/// A flood may make the tenant's p99 so many times as long, or this much longer: client, strangers
/// and server share the machine's cores.
const DURING_TIMES: f64 = 10.0;
const DURING_MS: f64 = 100.0;
/// And what is left of it afterwards.
const AFTER_TIMES: f64 = 3.0;
const AFTER_MS: f64 = 50.0;

#[derive(Debug, Args)]
pub(crate) struct StrangersArgs {
    /// Seconds of each of the three parts of a row
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Measure only this; may be given more than once
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Flood>,
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

/// One flood.
struct Row {
    flood: Flood,
    /// Before, during, after.
    parts: [Measured; 3],
}

/// Measures and reports.
#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) async fn run(args: StrangersArgs) -> Result<()> {
    // Strangers hold thousands of connections; the server inherits the limit.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let place = place::make("strangers", args.dir.as_deref())?;
    let tenant = Tenant::start(&args.metalmeshd, place.path()).await?;
    let part = Duration::from_secs(args.seconds);
    let began = Instant::now();
    let mut rows = Vec::new();
    for flood in Flood::ALL {
        if !args.only.is_empty() && !args.only.contains(&flood) {
            continue;
        }
        eprintln!("{:>4} s  {}", began.elapsed().as_secs(), flood.title());
        let before = tenant.measure(part).await?;
        let strangers = flood.begin(tenant.address()).await?;
        let during = tenant.measure(part).await?;
        drop(strangers);
        let after = tenant.measure(part).await?;
        rows.push(Row {
            flood,
            parts: [before, during, after],
        });
    }
    if args.output == Output::Table {
        println!("{}", table(&rows));
    }
    let lines: Vec<Value> = rows.iter().map(Row::json).collect();
    println!(
        "{}",
        json!({ "bench": "strangers", "seconds": args.seconds, "rows": lines })
    );
    let missed: Vec<&str> = rows
        .iter()
        .filter(|row| !row.is_met())
        .map(|row| row.flood.title())
        .collect();
    if missed.is_empty() {
        return Ok(());
    }
    bail!("missed: {}", missed.join("; "))
}

impl Row {
    fn failed(&self) -> usize {
        self.parts.iter().map(|part| part.failed).sum()
    }

    fn is_met(&self) -> bool {
        let [before, during, after] = self.parts.each_ref().map(|part| part.p99_ms);
        self.failed() == 0
            && during <= (before * DURING_TIMES).max(before + DURING_MS)
            && after <= (before * AFTER_TIMES).max(before + AFTER_MS)
    }

    fn json(&self) -> Value {
        let [before, during, after] = &self.parts;
        json!({
            "flood": self.flood.name(),
            "before_p99_ms": before.p99_ms, "during_p99_ms": during.p99_ms,
            "after_p99_ms": after.p99_ms,
            "before_calls": before.calls, "during_calls": during.calls,
            "after_calls": after.calls,
            "failed": self.failed(), "met": self.is_met(),
        })
    }

    fn cells(&self) -> [String; 6] {
        let [before, during, after] = self.parts.each_ref().map(|part| part.p99_ms);
        let met = if self.is_met() { "ok" } else { "MISSED" };
        [
            self.flood.title().to_owned(),
            format!("{before:.1}"),
            format!("{during:.1}"),
            format!("{after:.1}"),
            self.failed().to_string(),
            met.to_owned(),
        ]
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(["", "before, p99, ms", "during", "after", "failed", ""]);
    table.add_rows(rows.iter().map(Row::cells));
    for column in 1..=4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(p99_ms: [f64; 3], failed: usize) -> Row {
        let part = |p99_ms| Measured {
            p99_ms,
            calls: 100,
            failed,
        };
        Row {
            flood: Flood::Silent,
            parts: p99_ms.map(part),
        }
    }

    #[test]
    fn a_row_is_met_when_the_tenant_hardly_notices() {
        assert!(row([5.0, 100.0, 50.0], 0).is_met());
        assert!(!row([5.0, 200.0, 5.0], 0).is_met(), "slow meanwhile");
        assert!(!row([5.0, 5.0, 60.0], 0).is_met(), "slow afterwards");
        assert!(!row([5.0, 5.0, 5.0], 1).is_met(), "a call failed");
        let rows = [row([5.0, 200.0, 5.0], 0)];
        assert_eq!(table(&rows).matches("MISSED").count(), 1);
        assert_eq!(rows[0].json()["met"], false);
    }
}
