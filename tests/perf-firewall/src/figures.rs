//! Figures, their bars, and how they are shown.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};

use crate::figure::Bar::{AtLeast, AtMost, Nothing};
use crate::figure::{Bar, FIGURES, Figure, Summary};
use crate::sample::{median, quantile};

/// Numbers of the rounds by figure.
#[derive(Debug, Default)]
pub(crate) struct Report(BTreeMap<&'static str, Vec<f64>>);

impl Report {
    /// Adds a number of a round.
    pub(crate) fn add(&mut self, name: &'static str, number: f64) {
        self.0.entry(name).or_default().push(number);
    }

    fn value(&self, figure: &Figure) -> Option<f64> {
        let numbers = self.0.get(figure.of)?;
        match figure.summary {
            Summary::Median => median(numbers),
            Summary::P99 => quantile(numbers, 0.99),
        }
    }

    fn lines(&self) -> impl Iterator<Item = (&'static Figure, f64)> {
        let measured = move |figure| Some((figure, self.value(figure)?));
        FIGURES.iter().filter_map(measured)
    }

    /// The table for people.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header(["figure", "measured", "wanted", ""]);
        for (figure, value) in self.lines() {
            let digits = figure.digits;
            let verdict = match is_met(figure, value) {
                Some(true) => "ok",
                Some(false) => "MISSED",
                None => "",
            };
            let value = format!("{value:.digits$}");
            let row = [figure.title.to_owned(), value, wanted(figure.bar)];
            table.add_row(row.into_iter().chain([verdict.to_owned()]));
        }
        for column in 1..3 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }

    /// The line for programs.
    pub(crate) fn json(&self) -> Value {
        let mut figures = Map::new();
        for (figure, value) in self.lines() {
            let rounds = self.0.get(figure.of).map_or(0, Vec::len);
            let line = json!({
                "value": value, "wanted": wanted(figure.bar), "met": is_met(figure, value),
                "rounds": rounds,
            });
            figures.insert(figure.name.to_owned(), line);
        }
        json!({ "bench": "firewall", "figures": figures })
    }

    /// Titles of the figures that are not as wanted.
    pub(crate) fn missed(&self) -> Vec<&'static str> {
        let missed = |line: &(&Figure, f64)| is_met(line.0, line.1) == Some(false);
        self.lines()
            .filter(missed)
            .map(|line| line.0.title)
            .collect()
    }
}

fn is_met(figure: &Figure, value: f64) -> Option<bool> {
    match figure.bar {
        AtMost(bound) => Some(value <= bound),
        AtLeast(bound) => Some(value >= bound),
        Nothing => None,
    }
}

fn wanted(bar: Bar) -> String {
    match bar {
        AtMost(bound) => format!("<= {bound}"),
        AtLeast(bound) => format!(">= {bound}"),
        Nothing => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn figures_are_judged() {
        let mut report = Report::default();
        for ms in [1.0, 2.0, 900.0] {
            report.add("change_p50_ms", ms);
        }
        report.add("tcp_ratio", 0.96);
        let json = report.json();
        assert_eq!(json["figures"]["change_p50_ms"]["value"], 2.0);
        assert_eq!(json["figures"]["tcp_ratio"]["met"], true);
        assert_eq!(
            report.missed(),
            ["one rule: typed rules to verified table, p99, ms"]
        );
    }
}
