//! Rounds of decisions, and their report.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// Decisions between two looks at the clock, so that the clock is not what is measured.
const BATCH: u32 = 32;
/// Times that each row has its turn. Its median round is reported: what else the machine had to do
/// in one of them does not count.
pub(super) const ROUNDS: u32 = 9;

/// One round of a row, nanoseconds for each decision.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    mean: f64,
    p50: f64,
    p99: f64,
}

/// Lines of the table, and figures by name.
#[derive(Default)]
pub(super) struct DecisionReport {
    lines: String,
    figures: Map<String, Value>,
    /// Rows above their targets.
    pub(super) missed: Vec<&'static str>,
}

impl DecisionReport {
    pub(super) fn add(
        &mut self,
        name: &'static str,
        title: &str,
        max_ns: f64,
        rounds: Vec<Measured>,
    ) -> Result<()> {
        let of = median(rounds).context("nothing was measured")?;
        let good = of.mean <= max_ns;
        if !good {
            self.missed.push(name);
        }
        writeln!(
            self.lines,
            "{title:<62} {:>8.0} {:>8.0} {:>8.0} {max_ns:>9.0}{}",
            of.mean,
            of.p50,
            of.p99,
            if good { "" } else { "  MISSED" }
        )?;
        for (unit, value) in [("mean", of.mean), ("p50", of.p50), ("p99", of.p99)] {
            self.figures
                .insert(format!("{name}_{unit}_ns"), json!(value.round()));
        }
        Ok(())
    }

    pub(super) fn table(&self) -> String {
        format!(
            "{:<62} {:>8} {:>8} {:>8} {:>9}\n{}",
            "ONE DECISION, NS", "MEAN", "P50", "P99", "MEAN <=", self.lines
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({ "bench": "authz", "figures": self.figures, "missed": self.missed })
    }
}

/// One round of a row: its part of so many thousand decisions.
pub(super) fn timed(thousands: u32, decide: impl Fn() -> bool) -> Result<Measured> {
    let batches = usize::try_from(thousands)? * 1000 / usize::try_from(ROUNDS * BATCH)?;
    let mut took = Vec::with_capacity(batches);
    for round in 0..batches + batches / 10 {
        let began = Instant::now();
        for _ in 0..BATCH {
            black_box(decide());
        }
        let each = began.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH);
        // The first tenth warms caches up.
        if round >= batches / 10 {
            took.push(each);
        }
    }
    took.sort_by(f64::total_cmp);
    let at = |part: usize| took.get(took.len() * part / 100).copied();
    let count = u32::try_from(took.len())?;
    Ok(Measured {
        mean: took.iter().sum::<f64>() / f64::from(count),
        p50: at(50).context("nothing was measured")?,
        p99: at(99).context("nothing was measured")?,
    })
}

/// The mean of the round in the middle, nanoseconds, of rounds that follow each other.
pub(crate) fn median_mean_ns(thousands: u32, decide: impl Fn() -> bool) -> Result<f64> {
    let rounds = (0..ROUNDS).map(|_| timed(thousands, &decide));
    let rounds: Vec<Measured> = rounds.collect::<Result<_>>()?;
    let of = median(rounds).context("nothing was measured")?;
    Ok(of.mean)
}

/// The round in the middle by its mean.
fn median(mut rounds: Vec<Measured>) -> Option<Measured> {
    rounds.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    rounds.get(rounds.len() / 2).copied()
}
