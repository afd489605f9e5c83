//! Figures, their bars, and how they are shown.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};

/// One line of the table.
#[derive(Clone, Copy, Debug)]
struct Figure {
    /// Its key in the JSON; ends with the unit.
    name: &'static str,
    /// The text for people.
    title: &'static str,
    /// Digits behind the point.
    digits: usize,
    bar: Bar,
}

/// The value that a figure must have.
#[derive(Clone, Copy, Debug)]
enum Bar {
    AtMost(f64),
    Exactly(f64),
    /// Shown, and not judged.
    Nothing,
}

const fn figure(name: &'static str, title: &'static str, digits: usize, bar: Bar) -> Figure {
    Figure {
        name,
        title,
        digits,
        bar,
    }
}

/// Milliseconds between two polls of the published metal-core (`docs/reference/bench-switch.md`).
const PEER_POLL_MS: f64 = 10_000.0;

/// Every figure, in the order of the table.
const FIGURES: &[Figure] = &[
    figure(
        "sync_p50_ms",
        "floor: one fdatasync of 4 KiB, p50, ms",
        2,
        Bar::Nothing,
    ),
    figure(
        "datagram_p50_ms",
        "floor: one datagram there and back, p50, ms",
        3,
        Bar::Nothing,
    ),
    figure("call_p50_ms", "the call alone, p50, ms", 1, Bar::Nothing),
    figure(
        "hand_over_p50_ms",
        "hand-over: call to both leaves verified, p50, ms",
        1,
        Bar::Nothing,
    ),
    figure(
        "hand_over_p99_ms",
        "hand-over: call to both leaves verified, p99, ms",
        1,
        Bar::AtMost(1000.0),
    ),
    figure(
        "release_p50_ms",
        "release: call to both leaves verified, p50, ms",
        1,
        Bar::Nothing,
    ),
    figure(
        "release_p99_ms",
        "release: call to both leaves verified, p99, ms",
        1,
        Bar::AtMost(1000.0),
    ),
    figure(
        "port_cpu_ms",
        "one port of 64 with 500 VRFs: agent's CPU, ms",
        1,
        Bar::AtMost(100.0),
    ),
    figure(
        "port_pass_p50_ms",
        "one port: the pass, p50, ms",
        1,
        Bar::Nothing,
    ),
    figure(
        "port_pass_p99_ms",
        "one port: the pass, p99, ms",
        1,
        Bar::AtMost(100.0),
    ),
    figure(
        "port_report_p99_ms",
        "one port: order sent to report received, p99, ms",
        1,
        Bar::Nothing,
    ),
    figure(
        "port_steps_over",
        "one port: steps beyond those that it needs",
        0,
        Bar::Exactly(0.0),
    ),
    figure(
        "ports_report_s",
        "64 ports at once: order sent to report received, s",
        2,
        Bar::AtMost(3.0),
    ),
    figure(
        "ports_cpu_ms",
        "64 ports at once: agent's CPU, ms",
        1,
        Bar::Nothing,
    ),
    figure(
        "ports_steps_over",
        "64 ports at once: steps beyond those needed",
        0,
        Bar::Exactly(0.0),
    ),
    figure(
        "idle_cpu_percent",
        "the same agent without a change, CPU, % of a core",
        1,
        Bar::Nothing,
    ),
    figure(
        "rss_mib",
        "the same agent's memory, MiB",
        1,
        Bar::AtMost(40.0),
    ),
    figure(
        "frr_bytes_kib",
        "FRR with 500 VRFs: its configuration, KiB",
        0,
        Bar::Nothing,
    ),
    figure(
        "frr_parse_p50_ms",
        "FRR: configuration to model, agent's CPU, p50, ms",
        1,
        Bar::Nothing,
    ),
    figure(
        "frr_show_p50_ms",
        "FRR: vtysh shows its configuration, p50, ms",
        1,
        Bar::Nothing,
    ),
    figure(
        "frr_port_p50_ms",
        "FRR: one port's change, applied and verified, p50, ms",
        1,
        Bar::AtMost(1000.0),
    ),
    figure(
        "frr_port_cpu_ms",
        "FRR: one port's change, agent's CPU, ms",
        1,
        Bar::AtMost(100.0),
    ),
    figure(
        "desired_p50_ms",
        "desired state after one allocation, p50, ms",
        3,
        Bar::Nothing,
    ),
    figure(
        "desired_p99_ms",
        "desired state after one allocation, p99, ms",
        3,
        Bar::AtMost(5.0),
    ),
    figure(
        "desired_max_ms",
        "desired state after one allocation, slowest, ms",
        3,
        Bar::Nothing,
    ),
    figure(
        "desired_switches",
        "switches that it concerns",
        0,
        Bar::Exactly(2.0),
    ),
];

/// Figures that the published agent's interval between polls bounds from below.
const POLLED: [&str; 2] = ["hand_over_p99_ms", "release_p99_ms"];

/// The measured figures.
#[derive(Debug, Default)]
pub(super) struct Report {
    numbers: Vec<(&'static str, f64)>,
}

impl Report {
    /// Adds a figure. `name` is one of [`FIGURES`].
    pub(super) fn add(&mut self, name: &'static str, number: f64) {
        self.numbers.push((name, number));
    }

    fn lines(&self) -> impl Iterator<Item = (&'static Figure, f64)> {
        FIGURES.iter().filter_map(move |figure| {
            let mut numbers = self.numbers.iter();
            let found = numbers.find(|(name, _)| *name == figure.name);
            found.map(|(_, number)| (figure, *number))
        })
    }

    /// Titles of the figures that miss their bars.
    pub(super) fn missed(&self) -> Vec<&'static str> {
        let missed = self
            .lines()
            .filter(|(figure, number)| !figure.bar.is_met(*number));
        missed.map(|(figure, _)| figure.title).collect()
    }

    /// The table for people.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header(["", "ours", "polling, mean", "wanted", ""]);
        for (figure, number) in self.lines() {
            let digits = figure.digits;
            let peer = POLLED.contains(&figure.name).then_some(PEER_POLL_MS / 2.0);
            table.add_row([
                figure.title.to_owned(),
                format!("{number:.digits$}"),
                peer.map_or(String::new(), |ms| format!(">= {ms:.0}")),
                figure.bar.to_string(),
                figure.bar.verdict(number).to_owned(),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    /// The line for programs.
    pub(super) fn json(&self) -> Value {
        let figure = |(figure, number): (&Figure, f64)| {
            let value = json!({
                "ours": number, "wanted": figure.bar.to_string(), "met": figure.bar.is_met(number),
            });
            (figure.name.to_owned(), value)
        };
        let figures: Map<String, Value> = self.lines().map(figure).collect();
        json!({
            "bench": "switch", "figures": figures, "peer_poll_ms": PEER_POLL_MS,
            "missed": self.missed(),
        })
    }
}

impl Bar {
    fn is_met(self, number: f64) -> bool {
        match self {
            Self::AtMost(most) => number <= most,
            Self::Exactly(wanted) => (number - wanted).abs() < f64::EPSILON,
            Self::Nothing => true,
        }
    }

    fn verdict(self, number: f64) -> &'static str {
        match self {
            Self::Nothing => "",
            bar if bar.is_met(number) => "ok",
            _ => "MISSED",
        }
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most:.0}"),
            Self::Exactly(number) => write!(f, "{number:.0}"),
            Self::Nothing => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_over_its_bar_is_missed() {
        let mut report = Report::default();
        report.add("rss_mib", 41.0);
        report.add("port_cpu_ms", 100.0);
        report.add("port_steps_over", 0.0);
        assert_eq!(report.missed(), ["the same agent's memory, MiB"]);
        assert_eq!(report.table().to_string().matches("MISSED").count(), 1);
        assert_eq!(report.json()["figures"]["rss_mib"]["met"], false);
    }
}
