//! Counters of the steps that an agent takes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Labels of a counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StepLabels {
    step: &'static str,
    outcome: &'static str,
}

/// Counts the steps of an agent by name and outcome. Cheap to clone (`Arc`).
#[derive(Clone, Debug, Default)]
pub struct Steps(Family<StepLabels, Counter>);

impl Steps {
    /// Counts a step. Both names must be of fixed sets, since each pair becomes a time series.
    pub fn count(&self, step: &'static str, outcome: &'static str) {
        self.0.get_or_create(&StepLabels { step, outcome }).inc();
    }

    /// Counts a step with the outcome `done` or `failed`.
    pub fn ended<T, E>(&self, step: &'static str, result: &Result<T, E>) {
        self.count(step, if result.is_ok() { "done" } else { "failed" });
    }

    /// The counters, for a registry.
    pub(crate) fn family(&self) -> Family<StepLabels, Counter> {
        self.0.clone()
    }
}
