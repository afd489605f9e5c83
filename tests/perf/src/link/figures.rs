//! Figures of both links, what they must be, and how they are shown.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};

use super::serve::Link;
use crate::sample::median;

/// What a figure must be.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// So many times tonic's, more being better.
    More(f64),
    /// So many times better than tonic's, less being better.
    Less(f64),
    AtLeast(f64),
    AtMost(f64),
    /// For people to see.
    Anything,
}

struct Figure {
    /// Its key in the JSON; ends with the unit.
    name: &'static str,
    /// What people read.
    title: &'static str,
    digits: usize,
    wanted: Wanted,
}

const fn figure(name: &'static str, title: &'static str, digits: usize, wanted: Wanted) -> Figure {
    Figure {
        name,
        title,
        digits,
        wanted,
    }
}

const FIGURES: &[Figure] = &[
    figure(
        "handshakes_per_s",
        "full handshakes with a call, /s",
        0,
        Wanted::AtLeast(1000.0),
    ),
    figure(
        "handshakes_p99_ms",
        "handshake, 32 at a time, p99, ms",
        1,
        Wanted::Anything,
    ),
    figure(
        "handshakes_cpu_us",
        "handshake, server CPU, us",
        0,
        Wanted::Anything,
    ),
    figure(
        "calls_1_per_s",
        "1 session, 1 call at a time, /s",
        0,
        Wanted::More(2.0),
    ),
    figure(
        "calls_1_p99_ms",
        "1 session, 1 call at a time, p99, ms",
        3,
        Wanted::Less(2.0),
    ),
    figure(
        "calls_1_cpu_us",
        "1 session, 1 call at a time, server CPU, us",
        1,
        Wanted::Anything,
    ),
    figure(
        "calls_64_per_s",
        "1 session, 64 calls at a time, /s",
        0,
        Wanted::More(2.0),
    ),
    figure(
        "calls_64_p99_ms",
        "1 session, 64 calls at a time, p99, ms",
        3,
        Wanted::Less(2.0),
    ),
    figure(
        "calls_64_cpu_us",
        "1 session, 64 calls at a time, server CPU, us",
        1,
        Wanted::Anything,
    ),
    figure(
        "calls_1000_per_s",
        "1,000 sessions, 1 call each, /s",
        0,
        Wanted::More(2.0),
    ),
    figure(
        "calls_1000_p99_ms",
        "1,000 sessions, 1 call each, p99, ms",
        1,
        Wanted::Less(2.0),
    ),
    figure(
        "calls_1000_cpu_us",
        "1,000 sessions, 1 call each, server CPU, us",
        1,
        Wanted::Anything,
    ),
    figure(
        "session_kib",
        "memory of an idle session with a stream, KiB",
        1,
        Wanted::AtMost(56.0),
    ),
    figure(
        "agents_rss_mib",
        "metalmeshd with all agents and machines, MiB",
        0,
        Wanted::AtMost(1024.0),
    ),
    figure(
        "agents_cpu_percent",
        "their reports, CPU, % of a core",
        1,
        Wanted::Anything,
    ),
    figure(
        "intent_p50_ms",
        "intent to agent, p50, ms",
        1,
        Wanted::Anything,
    ),
    figure(
        "intent_p99_ms",
        "intent to agent, p99, ms",
        1,
        Wanted::AtMost(250.0),
    ),
    figure(
        "back_s",
        "all agents back after kill -9, s",
        1,
        Wanted::AtMost(60.0),
    ),
    figure("back_mean_s", "mean of that, s", 1, Wanted::Anything),
    figure(
        "back_p99_to_mean",
        "its p99 to its mean",
        2,
        Wanted::AtMost(2.0),
    ),
    figure(
        "lost",
        "reports that were never answered",
        0,
        Wanted::AtMost(0.0),
    ),
];

/// What was measured: a number a round.
#[derive(Debug, Default)]
pub(super) struct Report {
    numbers: Vec<(Link, String, f64)>,
    /// Of bare datagrams.
    datagrams: Vec<(&'static str, f64)>,
}

struct Line {
    figure: &'static Figure,
    ours: f64,
    tonic: Option<f64>,
    datagram: Option<f64>,
    ratio: Option<f64>,
    met: bool,
}

impl Report {
    pub(super) fn add(&mut self, link: Link, name: &str, number: f64) {
        self.numbers.push((link, name.to_owned(), number));
    }

    pub(super) fn add_datagram(&mut self, name: &'static str, number: f64) {
        self.datagrams.push((name, number));
    }

    fn datagram(&self, name: &str) -> Option<f64> {
        let rounds = self.datagrams.iter().filter(|(is, _)| *is == name);
        median(&rounds.map(|(_, number)| *number).collect::<Vec<_>>())
    }

    fn rounds(&self, link: Link, name: &str) -> Vec<f64> {
        let rounds = self.numbers.iter();
        let rounds = rounds.filter(|(of, is, _)| *of == link && is == name);
        rounds.map(|(_, _, number)| *number).collect()
    }

    fn lines(&self) -> Vec<Line> {
        FIGURES.iter().filter_map(|it| self.line(it)).collect()
    }

    fn line(&self, figure: &'static Figure) -> Option<Line> {
        let (ours, tonic) = (
            self.rounds(Link::Ours, figure.name),
            self.rounds(Link::Tonic, figure.name),
        );
        let is_rate = figure.name.ends_with("per_s");
        let better = |ours: f64, other: f64| if is_rate { ours / other } else { other / ours };
        let pairs = ours.iter().zip(&tonic);
        let ratios: Vec<f64> = pairs.map(|(ours, tonic)| better(*ours, *tonic)).collect();
        let (number, ratio) = (median(&ours)?, median(&ratios));
        let datagram = self.datagram(figure.name);
        let met = match figure.wanted {
            Wanted::More(than) | Wanted::Less(than) => ratio.is_none_or(|ratio| ratio >= than),
            Wanted::AtLeast(least) => number >= least,
            Wanted::AtMost(most) => number <= most,
            Wanted::Anything => true,
        };
        Some(Line {
            figure,
            ours: number,
            tonic: median(&tonic),
            datagram,
            ratio,
            met,
        })
    }

    /// What is not as it must be.
    pub(super) fn missed(&self) -> Vec<&'static str> {
        let lines = self.lines().into_iter().filter(|line| !line.met);
        lines.map(|line| line.figure.title).collect()
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header(["", "ours", "tonic", "datagram", "better", "wanted", ""]);
        for line in self.lines() {
            let digits = line.figure.digits;
            let number = |it: Option<f64>| it.map_or(String::new(), |it| format!("{it:.digits$}"));
            table.add_row([
                line.figure.title.to_owned(),
                number(Some(line.ours)),
                number(line.tonic),
                number(line.datagram),
                line.ratio.map_or(String::new(), |it| format!("{it:.1}")),
                line.figure.wanted.to_string(),
                (if line.met { "ok" } else { "MISSED" }).to_owned(),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    pub(super) fn json(&self) -> Value {
        let figure = |line: Line| {
            let value = json!({
                "ours": line.ours, "tonic": line.tonic, "datagram": line.datagram, "ratio": line.ratio,
                "met": line.met,
                "wanted": line.figure.wanted.to_string(),
            });
            (line.figure.name.to_owned(), value)
        };
        let figures: Map<String, Value> = self.lines().into_iter().map(figure).collect();
        json!({ "bench": "link", "figures": figures, "missed": self.missed() })
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::More(than) | Self::Less(than) => write!(f, ">= {than:.0} x"),
            Self::AtLeast(least) => write!(f, ">= {least:.0}"),
            Self::AtMost(most) => write!(f, "<= {most:.0}"),
            Self::Anything => Ok(()),
        }
    }
}
