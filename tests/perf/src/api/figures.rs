//! Figures, what they must be, and how they are shown.

use serde_json::{Map, Value, json};

use super::work::Work;
use crate::sample::median;
use crate::table::{number, table};

/// How many times better than Ironic's each figure must be.
const BETTER: f64 = 20.0;
/// How much an allocation may cost with many free machines, of what it costs with few.
const DEARER: f64 = 1.3;

/// Whose figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Ours,
    Ironic,
    /// Ours with more machines.
    Large,
}

impl Column {
    const ALL: [Self; 3] = [Self::Ours, Self::Ironic, Self::Large];
}

/// What a ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ratio {
    /// Ironic's divided by ours: less is better.
    Less,
    /// Ours divided by Ironic's: more is better.
    More,
    /// With many free machines divided by with few.
    Growth,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
struct Figure {
    /// Its key in the JSON; ends with the unit.
    name: &'static str,
    /// What people read.
    title: &'static str,
    /// Digits behind the point.
    digits: usize,
    ratio: Ratio,
}

const fn less(name: &'static str, title: &'static str, digits: usize) -> Figure {
    Figure {
        name,
        title,
        digits,
        ratio: Ratio::Less,
    }
}

const fn more(name: &'static str, title: &'static str) -> Figure {
    Figure {
        name,
        title,
        digits: 1,
        ratio: Ratio::More,
    }
}

const fn growth(name: &'static str, title: &'static str) -> Figure {
    Figure {
        name,
        title,
        digits: 0,
        ratio: Ratio::Growth,
    }
}

/// Every figure, in the order of the table.
const FIGURES: &[Figure] = &[
    less("list_p50_ms", "list 1,000, p50, ms", 2),
    less("list_p99_ms", "list 1,000, p99, ms", 2),
    less("list_cpu_ms", "list 1,000, CPU, ms", 2),
    less("list_detail_p50_ms", "list 1,000 in full, p50, ms", 2),
    less("list_detail_p99_ms", "list 1,000 in full, p99, ms", 2),
    less("list_detail_cpu_ms", "list 1,000 in full, CPU, ms", 2),
    less("get_p50_ms", "get one, p50, ms", 3),
    less("get_p99_ms", "get one, p99, ms", 3),
    less("get_cpu_ms", "get one, CPU, ms", 3),
    more("allocate_1_per_s", "1 client, allocations/s"),
    less("allocate_1_p50_ms", "1 client, allocation, p50, ms", 2),
    less("allocate_1_p99_ms", "1 client, allocation, p99, ms", 2),
    less("allocate_1_cpu_ms", "1 client, allocation, CPU, ms", 2),
    more("allocate_16_per_s", "16 clients, allocations/s"),
    less("allocate_16_p50_ms", "16 clients, allocation, p50, ms", 2),
    less("allocate_16_p99_ms", "16 clients, allocation, p99, ms", 2),
    less("allocate_16_cpu_ms", "16 clients, allocation, CPU, ms", 2),
    more("create_1_per_s", "1 client, machines created/s"),
    less("create_1_p50_ms", "1 client, create, p50, ms", 2),
    less("create_1_p99_ms", "1 client, create, p99, ms", 2),
    less("create_1_cpu_ms", "1 client, create, CPU, ms", 2),
    more("create_16_per_s", "16 clients, machines created/s"),
    less("create_16_p50_ms", "16 clients, create, p50, ms", 2),
    less("create_16_p99_ms", "16 clients, create, p99, ms", 2),
    less("create_16_cpu_ms", "16 clients, create, CPU, ms", 2),
    less("rss_loaded_mib", "memory, loaded, MiB", 0),
    less("rss_after_mib", "memory, after all this, MiB", 0),
    growth("free_p50_us", "1 client, allocation, p50, us"),
    growth("free_cpu_us", "1 client, allocation, CPU, us"),
];

/// Names of what is measured of a work: calls a second, p50, p99, CPU.
pub(super) const fn names(work: Work, clients: usize) -> [Option<&'static str>; 4] {
    match (work, clients) {
        (Work::List, _) => [
            None,
            Some("list_p50_ms"),
            Some("list_p99_ms"),
            Some("list_cpu_ms"),
        ],
        (Work::ListDetail, _) => [
            None,
            Some("list_detail_p50_ms"),
            Some("list_detail_p99_ms"),
            Some("list_detail_cpu_ms"),
        ],
        (Work::Get, _) => [
            None,
            Some("get_p50_ms"),
            Some("get_p99_ms"),
            Some("get_cpu_ms"),
        ],
        (Work::Allocate, 1) => [
            Some("allocate_1_per_s"),
            Some("allocate_1_p50_ms"),
            Some("allocate_1_p99_ms"),
            Some("allocate_1_cpu_ms"),
        ],
        (Work::Allocate, _) => [
            Some("allocate_16_per_s"),
            Some("allocate_16_p50_ms"),
            Some("allocate_16_p99_ms"),
            Some("allocate_16_cpu_ms"),
        ],
        (Work::Create, 1) => [
            Some("create_1_per_s"),
            Some("create_1_p50_ms"),
            Some("create_1_p99_ms"),
            Some("create_1_cpu_ms"),
        ],
        (Work::Create, _) => [
            Some("create_16_per_s"),
            Some("create_16_p50_ms"),
            Some("create_16_p99_ms"),
            Some("create_16_cpu_ms"),
        ],
    }
}

/// What was measured: a number a round.
#[derive(Debug, Default)]
pub(super) struct Report {
    numbers: Vec<(Column, &'static str, f64)>,
}

/// A figure of all rounds.
struct Line {
    figure: Figure,
    /// Medians of the rounds, by column.
    medians: [Option<f64>; 3],
    ratio: Option<f64>,
}

impl Report {
    /// Adds a round's number. Of figures that say how cost grows, `Ours` is with few free machines.
    pub(super) fn add(&mut self, column: Column, name: &'static str, number: f64) {
        self.numbers.push((column, name, number));
    }

    fn rounds(&self, column: Column, name: &str) -> Vec<f64> {
        let rounds = self.numbers.iter();
        let rounds = rounds.filter(|(c, n, _)| *c == column && *n == name);
        rounds.map(|(_, _, number)| *number).collect()
    }

    /// The median of each round's ratio.
    fn ratio(&self, figure: &Figure) -> Option<f64> {
        let of = |column| self.rounds(column, figure.name);
        let (over, under) = match figure.ratio {
            Ratio::Less => (of(Column::Ironic), of(Column::Ours)),
            Ratio::More => (of(Column::Ours), of(Column::Ironic)),
            Ratio::Growth => (of(Column::Large), of(Column::Ours)),
        };
        let pairs = over.iter().zip(&under).filter(|(_, under)| **under > 0.0);
        let ratios: Vec<f64> = pairs.map(|(over, under)| over / under).collect();
        median(&ratios)
    }

    fn lines(&self) -> Vec<Line> {
        let line = |figure: &Figure| Line {
            figure: *figure,
            medians: Column::ALL.map(|column| median(&self.rounds(column, figure.name))),
            ratio: self.ratio(figure),
        };
        let lines = FIGURES.iter().map(line);
        lines
            .filter(|line| line.medians.iter().any(Option::is_some))
            .collect()
    }

    /// The tables for people: beside Ironic, and with many free machines beside `few`.
    pub(super) fn tables(&self, machines: u32, large: u32, few: u32) -> String {
        let (growth, beside): (Vec<_>, Vec<_>) = self
            .lines()
            .into_iter()
            .partition(|line| line.figure.is_growth());
        let mut tables = Vec::new();
        if !beside.is_empty() {
            let header = [
                String::new(),
                format!("ours, {machines}"),
                format!("Ironic, {machines}"),
                "better".into(),
                "wanted".into(),
                String::new(),
                format!("ours, {large}"),
            ];
            let row = |line: &Line| {
                let [ours, ironic, large] = line.shown();
                let [title, ratio, wanted, met] = line.judged(0);
                [title, ours, ironic, ratio, wanted, met, large]
            };
            tables.push(table(header, beside.iter().map(row)));
        }
        if !growth.is_empty() {
            let header = [
                String::new(),
                format!("ours, {few} free"),
                format!("ours, {large} free"),
                "ratio".into(),
                "wanted".into(),
                String::new(),
            ];
            let row = |line: &Line| {
                let [few, _, many] = line.shown();
                let [title, ratio, wanted, met] = line.judged(2);
                [title, few, many, ratio, wanted, met]
            };
            tables.push(table(header, growth.iter().map(row)));
        }
        tables.join("\n")
    }

    /// The line for programs.
    pub(super) fn json(&self, machines: u32, large: u32) -> Value {
        let mut figures = Map::new();
        for line in self.lines() {
            let [ours, ironic, larger] = line.medians;
            let value = json!({
                "ours": ours, "ironic": ironic, "ours_large": larger, "ratio": line.ratio,
                "wanted": line.figure.wanted(), "met": line.is_met(),
                "rounds": self.rounds(Column::Ours, line.figure.name),
            });
            figures.insert(line.figure.name.to_owned(), value);
        }
        json!({ "bench": "api", "machines": machines, "large": large, "figures": figures })
    }

    /// Titles of the figures that are not what they must be.
    pub(super) fn missed(&self) -> Vec<&'static str> {
        let lines = self.lines().into_iter();
        let missed = lines.filter(|line| line.is_met() == Some(false));
        missed.map(|line| line.figure.title).collect()
    }
}

impl Figure {
    fn is_growth(&self) -> bool {
        self.ratio == Ratio::Growth
    }

    fn wanted(&self) -> String {
        if self.is_growth() {
            format!("<= {DEARER} x")
        } else {
            format!(">= {BETTER} x")
        }
    }
}

impl Line {
    /// The medians.
    fn shown(&self) -> [String; 3] {
        self.medians.map(|it| number(it, self.figure.digits))
    }

    /// Title, ratio, what was wanted, and whether it is so.
    fn judged(&self, digits: usize) -> [String; 4] {
        let met = match self.is_met() {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "",
        };
        let wanted = self.ratio.map(|_| self.figure.wanted());
        [
            self.figure.title.to_owned(),
            number(self.ratio, digits),
            wanted.unwrap_or_default(),
            met.to_owned(),
        ]
    }

    /// Nothing without both sides.
    fn is_met(&self) -> Option<bool> {
        let ratio = self.ratio?;
        Some(if self.figure.is_growth() {
            ratio <= DEARER
        } else {
            ratio >= BETTER
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_pairs_and_say_how_much_better_ours_is() {
        let mut report = Report::default();
        for (ours, ironic) in [(1.0, 30.0), (1.0, 10.0), (2.0, 50.0)] {
            report.add(Column::Ours, "list_p50_ms", ours);
            report.add(Column::Ironic, "list_p50_ms", ironic);
        }
        report.add(Column::Ours, "create_1_per_s", 100.0);
        report.add(Column::Ironic, "create_1_per_s", 10.0);
        report.add(Column::Ours, "free_cpu_us", 100.0);
        report.add(Column::Large, "free_cpu_us", 131.0);
        // Nothing to hold it against.
        report.add(Column::Large, "get_p50_ms", 1.0);
        let json = report.json(5000, 10_000);
        assert_eq!(json["figures"]["list_p50_ms"]["ratio"], 25.0);
        assert_eq!(json["figures"]["list_p50_ms"]["met"], true);
        assert_eq!(
            report.missed(),
            [
                "1 client, machines created/s",
                "1 client, allocation, CPU, us"
            ]
        );
        let tables = report.tables(5000, 10_000, 100);
        assert_eq!(tables.matches("MISSED").count(), 2, "{tables}");
    }

    #[test]
    fn whatever_is_measured_is_shown() {
        for work in [
            Work::List,
            Work::ListDetail,
            Work::Get,
            Work::Create,
            Work::Allocate,
        ] {
            for name in [1, 16].into_iter().flat_map(|clients| names(work, clients)) {
                let is_shown = |name| FIGURES.iter().any(|figure| figure.name == name);
                assert!(name.is_none_or(is_shown), "{name:?}");
            }
        }
    }
}
