//! Rows that are measured in the bench's own process.

use serde_json::{Value, json};

use crate::sample::Latencies;
use crate::table::number;

/// A row of one part of the product, against a bound.
#[derive(Debug)]
pub(super) struct ProcessRow {
    /// Its key in the JSON; ends with the unit.
    pub(super) name: &'static str,
    /// Title for people, with the unit.
    pub(super) title: String,
    /// Digits behind the point.
    pub(super) digits: usize,
    /// The median.
    pub(super) typical: f64,
    /// The value that is held against the bound: the slowest rule, or the p99 of commands.
    pub(super) worst: f64,
    /// The bound.
    pub(super) max: f64,
    /// The case that was the slowest; empty where all are alike.
    pub(super) remark: String,
}

impl ProcessRow {
    /// The header of the table of such rows.
    pub(super) fn header() -> [String; 6] {
        ["in this process", "typical", "worst", "wanted", "", ""].map(str::to_owned)
    }

    /// A row of commands, in milliseconds.
    pub(super) fn of_commands(
        name: &'static str,
        title: String,
        mut took: Latencies,
        max: f64,
    ) -> Self {
        let slowest = took.quantile_us(1.0) / 1e3;
        Self {
            name,
            title,
            digits: 3,
            typical: took.quantile_us(0.5) / 1e3,
            worst: took.quantile_us(0.99) / 1e3,
            max,
            remark: format!("slowest of {}: {slowest:.3}", took.len()),
        }
    }

    /// `true` if the bound is kept.
    pub(super) fn is_met(&self) -> bool {
        self.worst <= self.max
    }

    /// Its cells.
    pub(super) fn cells(&self) -> [String; 6] {
        let met = if self.is_met() { "ok" } else { "MISSED" };
        [
            self.title.clone(),
            number(Some(self.typical), self.digits),
            number(Some(self.worst), self.digits),
            format!("<= {}", self.max),
            met.to_owned(),
            self.remark.clone(),
        ]
    }

    /// Its figures.
    pub(super) fn json(&self) -> Value {
        json!({
            "typical": self.typical, "worst": self.worst, "max": self.max, "met": self.is_met(),
            "remark": self.remark,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn commands_are_judged_by_their_p99() {
        let mut took = Latencies::default();
        for _ in 0..199 {
            took.add(Duration::from_millis(1));
        }
        // One of two hundred is beyond the p99.
        took.add(Duration::from_millis(50));
        for (max, is_met) in [(2.0, true), (0.5, false)] {
            let title = "a command, ms".to_owned();
            let row = ProcessRow::of_commands("command_ms", title, took.clone(), max);
            assert_eq!(row.is_met(), is_met, "{max}");
            assert_eq!(row.cells()[2], "1.000");
            assert_eq!(row.remark, "slowest of 200: 50.000");
        }
    }
}
