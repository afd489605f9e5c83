//! Figures, what they must be, and how they are shown.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};

use crate::cluster::System;
use crate::sample::median;

/// What a figure must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// Ours is at least so many times etcd's, with TLS.
    RatioAtLeast(f64),
    /// Ours is at most so many times etcd's, with TLS.
    RatioAtMost(f64),
    /// Ours is at most this.
    AtMost(f64),
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// Its key in the JSON; ends with the unit.
    pub(crate) name: &'static str,
    /// What people read.
    pub(crate) title: &'static str,
    /// Digits behind the point.
    pub(crate) digits: usize,
    pub(crate) target: Option<Target>,
}

/// Every figure, in the order of the table.
pub(crate) const FIGURES: &[Figure] = &[
    info("sync_p50_us", "bare fdatasync of 4 KiB, p50, us", 0),
    info("sync_p99_us", "bare fdatasync of 4 KiB, p99, us", 0),
    of(
        "write_1_p50_us",
        "1 client, write, p50, us",
        0,
        Target::RatioAtMost(1.2),
    ),
    info("write_1_p99_us", "1 client, write, p99, us", 0),
    of(
        "write_64_per_s",
        "64 clients, writes/s",
        0,
        Target::RatioAtLeast(1.5),
    ),
    info("write_64_p99_us", "64 clients, write, p99, us", 0),
    of(
        "write_64_cpu_us",
        "64 clients, CPU per write, us",
        1,
        Target::RatioAtMost(0.8),
    ),
    of(
        "write_256_per_s",
        "256 clients, writes/s",
        0,
        Target::RatioAtLeast(1.5),
    ),
    info("write_256_p99_us", "256 clients, write, p99, us", 0),
    of(
        "write_256_cpu_us",
        "256 clients, CPU per write, us",
        1,
        Target::RatioAtMost(0.8),
    ),
    of(
        "read_64_per_s",
        "64 clients, linearizable reads/s",
        0,
        Target::RatioAtLeast(1.8),
    ),
    info("read_64_p99_us", "64 clients, read, p99, us", 0),
    info("read_64_cpu_us", "64 clients, CPU per read, us", 1),
    info("watch_p50_ms", "1,000 watchers, delay, p50, ms", 2),
    of(
        "watch_p99_ms",
        "1,000 watchers, delay, p99, ms",
        2,
        Target::RatioAtMost(1.0),
    ),
    info("failover_p50_s", "leader killed, next write, p50, s", 2),
    of(
        "failover_p99_s",
        "leader killed, next write, p99, s",
        2,
        Target::AtMost(3.0),
    ),
    info("failover_kills", "kills", 0),
    info("failover_acknowledged", "acknowledged around the kills", 0),
    of("failover_lost", "of them lost", 0, Target::AtMost(0.0)),
    of(
        "rss_idle_mib",
        "largest node, idle, MiB",
        0,
        Target::AtMost(150.0),
    ),
    info("rss_after_mib", "largest node, after all load, MiB", 0),
    of(
        "restart_s",
        "100,000 machines, restart after kill -9, s",
        2,
        Target::AtMost(10.0),
    ),
    of(
        "list_p50_ms",
        "10,000 of them listed, p50, ms",
        1,
        Target::AtMost(100.0),
    ),
    info("list_cpu_ms", "10,000 of them listed, CPU, ms", 1),
    info("list_max_ms", "10,000 of them listed, longest, ms", 1),
    info("inventory_rss_mib", "100,000 machines, memory, MiB", 0),
];

/// Counts, of which a ratio would say nothing.
const COUNTS: [&str; 3] = ["failover_kills", "failover_acknowledged", "failover_lost"];

const fn info(name: &'static str, title: &'static str, digits: usize) -> Figure {
    Figure {
        name,
        title,
        digits,
        target: None,
    }
}

const fn of(name: &'static str, title: &'static str, digits: usize, target: Target) -> Figure {
    Figure {
        name,
        title,
        digits,
        target: Some(target),
    }
}

/// What was measured: a number a round.
#[derive(Debug, Default)]
pub(crate) struct Report {
    numbers: Vec<(System, &'static str, f64)>,
}

/// A figure of all rounds.
struct Line {
    figure: Figure,
    /// Medians of the rounds, by system.
    medians: [Option<f64>; 3],
    /// Medians of each round's ours divided by each round's etcd, with TLS and without.
    ratios: [Option<f64>; 2],
}

impl Report {
    /// Adds a round's number. `name` is one of [`FIGURES`].
    pub(crate) fn add(&mut self, system: System, name: &'static str, number: f64) {
        self.numbers.push((system, name, number));
    }

    fn rounds(&self, system: System, name: &str) -> Vec<f64> {
        let rounds = self.numbers.iter();
        let rounds = rounds.filter(|(s, n, _)| *s == system && *n == name);
        rounds.map(|(_, _, number)| *number).collect()
    }

    fn ratio(&self, name: &str, to: System) -> Option<f64> {
        if COUNTS.contains(&name) {
            return None;
        }
        let (ours, theirs) = (self.rounds(System::Ours, name), self.rounds(to, name));
        let pairs = ours.iter().zip(&theirs);
        let ratios: Vec<f64> = pairs
            .filter(|(_, theirs)| **theirs > 0.0)
            .map(|(ours, theirs)| ours / theirs)
            .collect();
        median(&ratios)
    }

    fn lines(&self) -> Vec<Line> {
        let line = |figure: &Figure| Line {
            figure: *figure,
            medians: System::ALL.map(|system| median(&self.rounds(system, figure.name))),
            ratios: [System::EtcdTls, System::EtcdPlain].map(|to| self.ratio(figure.name, to)),
        };
        let lines = FIGURES.iter().map(line);
        lines
            .filter(|line| line.medians.iter().any(Option::is_some))
            .collect()
    }

    /// The table for people.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header([
            "",
            "ours",
            "etcd TLS",
            "etcd plain",
            "ratio",
            "to plain",
            "wanted",
            "",
        ]);
        for line in self.lines() {
            let digits = line.figure.digits;
            let number = |number: Option<f64>, digits: usize| {
                number.map_or_else(String::new, |number| format!("{number:.digits$}"))
            };
            let mut row = vec![line.figure.title.to_owned()];
            row.extend(line.medians.map(|it| number(it, digits)));
            row.extend(line.ratios.map(|it| number(it, 2)));
            row.push(line.figure.target.map(wanted).unwrap_or_default());
            row.push(match line.is_met() {
                Some(true) => "ok".to_owned(),
                Some(false) => "MISSED".to_owned(),
                None => String::new(),
            });
            table.add_row(row);
        }
        for column in 1..6 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }

    /// The line for programs.
    pub(crate) fn json(&self) -> Value {
        let mut figures = Map::new();
        for line in self.lines() {
            let [ours, tls, plain] = line.medians;
            let value = json!({
                "ours": ours, "etcd_tls": tls, "etcd_plain": plain,
                "ratio": line.ratios[0], "ratio_plain": line.ratios[1],
                "wanted": line.figure.target.map(wanted), "met": line.is_met(),
                "rounds": self.rounds(System::Ours, line.figure.name),
            });
            figures.insert(line.figure.name.to_owned(), value);
        }
        json!({ "bench": "store", "figures": figures })
    }

    /// Titles of the figures that are not what they must be.
    pub(crate) fn missed(&self) -> Vec<&'static str> {
        let lines = self.lines().into_iter();
        let missed = lines.filter(|line| line.is_met() == Some(false));
        missed.map(|line| line.figure.title).collect()
    }
}

impl Line {
    /// Nothing without a target, or without a number to hold against it.
    fn is_met(&self) -> Option<bool> {
        match self.figure.target? {
            Target::RatioAtLeast(bound) => self.ratios[0].map(|ratio| ratio >= bound),
            Target::RatioAtMost(bound) => self.ratios[0].map(|ratio| ratio <= bound),
            Target::AtMost(bound) => self.medians[0].map(|ours| ours <= bound),
        }
    }
}

fn wanted(target: Target) -> String {
    match target {
        Target::RatioAtLeast(bound) => format!(">= {bound} x"),
        Target::RatioAtMost(bound) => format!("<= {bound} x"),
        Target::AtMost(bound) => format!("<= {bound}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_pairs_and_targets_are_judged() {
        let mut report = Report::default();
        for (ours, etcd) in [(300.0, 100.0), (100.0, 100.0), (170.0, 100.0)] {
            report.add(System::Ours, "write_64_per_s", ours);
            report.add(System::EtcdTls, "write_64_per_s", etcd);
        }
        report.add(System::Ours, "rss_idle_mib", 151.0);
        let json = report.json();
        let figure = &json["figures"]["write_64_per_s"];
        assert_eq!(figure["ratio"], 1.7);
        assert_eq!(figure["met"], true);
        assert_eq!(report.missed(), ["largest node, idle, MiB"]);
        assert!(report.table().contains("MISSED"));
    }
}
