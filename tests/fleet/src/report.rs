//! What came of a run.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::control::Usage;
use crate::delays::Delays;
use crate::world::Spread;

/// One of the two parts of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    pub(crate) took_s: f64,
    /// Processor time of control.
    pub(crate) cpu_s: f64,
}

/// Figures of a run.
#[derive(Debug)]
pub struct Report {
    pub(crate) machines: usize,
    pub(crate) partitions: usize,
    pub(crate) leaves: usize,
    pub(crate) delays: Delays,
    pub(crate) ingest: Part,
    pub(crate) idle: Part,
    pub(crate) tenancies: Part,
    /// Allocated, ran, freed, failed.
    pub(crate) deeds: [usize; 4],
    /// The seed and how often each fault came about; none without chaos.
    pub(crate) faults: Option<(u64, BTreeMap<&'static str, u64>)>,
    pub(crate) steps: BTreeMap<&'static str, Spread>,
    pub(crate) control: Usage,
    pub(crate) checks: BTreeMap<&'static str, u64>,
}

impl Report {
    /// Machines that became ready in a minute.
    #[must_use]
    pub fn ready_per_minute(&self) -> f64 {
        self.machines as f64 * 60.0 / self.ingest.took_s.max(f64::EPSILON)
    }

    /// Processor time of control for each machine until it was ready, milliseconds.
    #[must_use]
    pub fn cpu_ms_per_machine(&self) -> f64 {
        self.ingest.cpu_s * 1000.0 / self.machines as f64
    }

    /// Machines a minute that control has the time for on one processor.
    #[must_use]
    pub fn capacity_per_minute(&self) -> f64 {
        60_000.0 / self.cpu_ms_per_machine().max(f64::EPSILON)
    }

    /// Processor time of control while nothing happens, of a hundred.
    #[must_use]
    pub fn idle_percent(&self) -> f64 {
        if self.idle.took_s > 0.0 {
            self.idle.cpu_s * 100.0 / self.idle.took_s
        } else {
            0.0
        }
    }

    /// How often invariants were checked.
    #[must_use]
    pub fn checks(&self) -> u64 {
        self.checks.values().sum()
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!(
                "{} machines, {} partitions, {} leaves",
                self.machines, self.partitions, self.leaves
            ),
            format!("simulated hardware: {}", self.delays.text()),
            format!(
                "ingest to ready: {:.1} s, {:.0} machines a minute; control used {:.1} s of CPU, \
                 {:.1} ms a machine: one processor has the time for {:.0} a minute",
                self.ingest.took_s,
                self.ready_per_minute(),
                self.ingest.cpu_s,
                self.cpu_ms_per_machine(),
                self.capacity_per_minute()
            ),
        ];
        let [allocated, ran, freed, failed] = self.deeds;
        if allocated > 0 {
            lines.push(format!(
                "tenancies: {allocated} allocated, {ran} ran, {failed} failed, {freed} came back \
                 clean, in {:.1} s; control used {:.1} s of CPU",
                self.tenancies.took_s, self.tenancies.cpu_s
            ));
        }
        if self.idle.took_s > 0.0 {
            let (took, percent) = (self.idle.took_s, self.idle_percent());
            lines.push(format!(
                "idle for {took:.0} s: control used {percent:.1} % of a processor"
            ));
        }
        if let Some((seed, faults)) = &self.faults {
            let faults = faults.iter().map(|(name, count)| format!("{name} {count}"));
            let faults: Vec<_> = faults.collect();
            lines.push(format!("chaos, --seed {seed}: {}", faults.join(", ")));
        }
        lines.push(format!(
            "control: {:.1} s of CPU in all, {:.0} MiB now, {:.0} MiB at most",
            self.control.cpu_s, self.control.rss_mib, self.control.rss_peak_mib
        ));
        lines.push(self.steps_table());
        let checks = self
            .checks
            .iter()
            .map(|(name, count)| format!("  {name}: {count}"));
        lines.push("invariants held, checks of each:".into());
        lines.extend(checks);
        lines.join("\n")
    }

    fn steps_table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header(["step", "times", "p50, ms", "p99, ms"]);
        table.add_rows(self.steps.iter().map(|(step, spread)| {
            let Spread {
                count,
                p50_ms,
                p99_ms,
            } = spread;
            [
                (*step).to_owned(),
                count.to_string(),
                format!("{p50_ms:.0}"),
                format!("{p99_ms:.0}"),
            ]
        }));
        for column in 1..4 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let step = |(step, spread): (&&str, &Spread)| {
            let value = json!({
                "count": spread.count, "p50_ms": spread.p50_ms, "p99_ms": spread.p99_ms,
            });
            ((*step).to_owned(), value)
        };
        let steps: serde_json::Map<_, _> = self.steps.iter().map(step).collect();
        let [allocated, ran, freed, failed] = self.deeds;
        json!({
            "machines": self.machines, "partitions": self.partitions, "leaves": self.leaves,
            "delays": self.delays.json(),
            "ingest_s": self.ingest.took_s, "ingest_cpu_s": self.ingest.cpu_s,
            "ready_per_minute": self.ready_per_minute(),
            "cpu_ms_per_machine": self.cpu_ms_per_machine(),
            "capacity_per_minute": self.capacity_per_minute(),
            "idle_percent": self.idle_percent(),
            "tenancies": {
                "allocated": allocated, "ran": ran, "freed": freed, "failed": failed,
                "took_s": self.tenancies.took_s, "cpu_s": self.tenancies.cpu_s,
            },
            "control": {
                "cpu_s": self.control.cpu_s, "rss_mib": self.control.rss_mib,
                "rss_peak_mib": self.control.rss_peak_mib,
            },
            "chaos": self.faults.as_ref().map(|(seed, faults)| json!({
                "seed": seed, "faults": faults,
            })),
            "steps": steps, "checks": self.checks,
        })
    }
}
