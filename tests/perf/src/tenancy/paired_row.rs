//! Rows that both systems have.

use serde_json::{Value, json};

use super::work::{NodeWork, PairedStep};
use crate::callers::Measured;
use crate::sample::median;
use crate::table::number;

/// Nodes from which ratios are judged.
const JUDGED_NODES: u32 = 5_000;
/// How many times Ironic's rate of allocations ours must be, with so many nodes.
const ALLOCATIONS_MIN: f64 = 50.0;
/// How many times Ironic's rate of lists ours must be, with so many nodes.
const LISTS_MIN: f64 = 20.0;

/// One round of a row at one system.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairedRound {
    pub(super) per_s: f64,
    pub(super) p50_ms: f64,
    /// Of all processes of the system, per call.
    pub(super) cpu_ms: f64,
    /// Calls that failed.
    pub(super) failed: usize,
}

/// A step with so many nodes, at both systems.
#[derive(Clone, Debug)]
pub(super) struct PairedRow {
    pub(super) step: PairedStep,
    pub(super) nodes: u32,
    /// Rounds of ours.
    pub(super) ours: Vec<PairedRound>,
    /// Rounds of Ironic, in the order of ours.
    pub(super) ironic: Vec<PairedRound>,
}

impl PairedRound {
    /// The figures of a run.
    pub(super) fn of(mut measured: Measured) -> Self {
        Self {
            per_s: measured.per_s,
            p50_ms: measured.latencies.quantile_us(0.5) / 1e3,
            cpu_ms: measured.cpu_us / 1e3,
            failed: measured.failed,
        }
    }
}

impl PairedRow {
    /// A row without a round.
    pub(super) fn new(step: PairedStep, nodes: u32) -> Self {
        Self {
            step,
            nodes,
            ours: Vec::new(),
            ironic: Vec::new(),
        }
    }

    /// Its key in the JSON: work, clients, nodes.
    pub(super) fn name(&self) -> String {
        let work = self.step.work.name();
        format!("{work}_{}_{}", self.step.clients, self.nodes)
    }

    /// Title for people.
    pub(super) fn title(&self) -> String {
        let clients = match self.step.clients {
            1 => "1 client".to_owned(),
            many => format!("{many} clients"),
        };
        let work = self.step.work.title();
        format!("{} nodes, {clients}, {work}", self.nodes)
    }

    /// The least ratio. `None` means that the row is not judged.
    fn wanted(&self) -> Option<f64> {
        let least = match self.step.work {
            NodeWork::Allocate => ALLOCATIONS_MIN,
            NodeWork::List => LISTS_MIN,
            NodeWork::Create => return None,
        };
        (self.nodes >= JUDGED_NODES).then_some(least)
    }

    /// The median of each round's ratio of the rates, ours by Ironic's. `None` means that a side has
    /// no round.
    fn ratio(&self) -> Option<f64> {
        let pairs = self.ours.iter().zip(&self.ironic);
        let ratios: Vec<f64> = pairs
            .map(|(ours, ironic)| ours.per_s / ironic.per_s)
            .collect();
        median(&ratios)
    }

    /// `true` if the ratio is large enough. `None` means that the row is not judged.
    pub(super) fn is_met(&self) -> Option<bool> {
        let (wanted, ratio) = (self.wanted()?, self.ratio()?);
        Some(ratio >= wanted)
    }

    /// The header of the table of such rows.
    pub(super) fn header() -> [String; 10] {
        [
            "",
            "ours/s",
            "Ironic/s",
            "ratio",
            "wanted",
            "",
            "ours p50, ms",
            "Ironic p50, ms",
            "ours CPU, ms",
            "Ironic CPU, ms",
        ]
        .map(str::to_owned)
    }

    /// Its cells.
    pub(super) fn cells(&self) -> [String; 10] {
        let sides = [&self.ours, &self.ironic];
        let [ours_per_s, ironic_per_s] = sides.map(|side| shown(side, |round| round.per_s, 1));
        let [ours_p50, ironic_p50] = sides.map(|side| shown(side, |round| round.p50_ms, 2));
        let [ours_cpu, ironic_cpu] = sides.map(|side| shown(side, |round| round.cpu_ms, 2));
        let met = match self.is_met() {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "",
        };
        let wanted = self.wanted().map(|least| format!(">= {least} x"));
        [
            self.title(),
            ours_per_s,
            ironic_per_s,
            number(self.ratio(), 1),
            wanted.unwrap_or_default(),
            met.to_owned(),
            ours_p50,
            ironic_p50,
            ours_cpu,
            ironic_cpu,
        ]
    }

    /// Its figures, round by round.
    pub(super) fn json(&self) -> Value {
        json!({
            "nodes": self.nodes, "clients": self.step.clients, "calls": self.step.calls,
            "ratio": self.ratio(), "wanted": self.wanted(), "met": self.is_met(),
            "ours": rounds_json(&self.ours), "ironic": rounds_json(&self.ironic),
        })
    }
}

/// The median of a figure of the rounds.
fn shown(rounds: &[PairedRound], figure: fn(&PairedRound) -> f64, digits: usize) -> String {
    let figures: Vec<f64> = rounds.iter().map(figure).collect();
    number(median(&figures), digits)
}

fn rounds_json(rounds: &[PairedRound]) -> Value {
    let rounds = rounds.iter().map(|round| {
        json!({
            "per_s": round.per_s, "p50_ms": round.p50_ms, "cpu_ms": round.cpu_ms,
            "failed": round.failed,
        })
    });
    rounds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(work: NodeWork, nodes: u32, rates: &[(f64, f64)]) -> PairedRow {
        let round = |per_s| PairedRound {
            per_s,
            p50_ms: 1.0,
            cpu_ms: 1.0,
            failed: 0,
        };
        let step = PairedStep {
            work,
            clients: 4,
            calls: 12,
        };
        PairedRow {
            ours: rates.iter().map(|(ours, _)| round(*ours)).collect(),
            ironic: rates.iter().map(|(_, ironic)| round(*ironic)).collect(),
            ..PairedRow::new(step, nodes)
        }
    }

    #[test]
    fn the_median_of_ratios_is_judged_where_there_is_a_bound() {
        let rates = [(1000.0, 1.0), (30.0, 1.0), (60.0, 2.0)];
        for (work, nodes, met) in [
            (NodeWork::List, 5_000, Some(true)),
            (NodeWork::Allocate, 5_000, Some(false)),
            (NodeWork::Allocate, 1_000, None),
            (NodeWork::Create, 5_000, None),
        ] {
            let row = row(work, nodes, &rates);
            assert_eq!(row.ratio(), Some(30.0));
            assert_eq!(row.is_met(), met, "{}", row.title());
        }
        assert_eq!(row(NodeWork::List, 5_000, &[]).is_met(), None);
        let row = row(NodeWork::Allocate, 5_000, &rates);
        assert_eq!(row.name(), "allocate_4_5000");
        assert_eq!(
            row.cells()[..4],
            [
                "5000 nodes, 4 clients, allocation until active",
                "60.0",
                "1.0",
                "30.0"
            ]
        );
    }
}
