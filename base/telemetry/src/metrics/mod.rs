//! The metrics of every program, and the listener for Prometheus.
//!
//! A program fills a [`Registry`] and gives it to [`spawn`], which answers `GET /metrics` in the
//! text format of OpenMetrics. Events are counted when they happen. Values that follow from the
//! program's state are read at each scrape, by a [`Collector`] that writes on a [`Sheet`].
//!
//! Invariants:
//! - Names begin with `metalmesh_` and end in their unit, counters in `_total`.
//! - No label has an id of a machine, an agent, a user or a project.
//! - One scrape runs at a time; concurrent ones get its result.

mod process;
mod serve;
mod sheet;

pub use prometheus_client::collector::Collector;
pub use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
pub use prometheus_client::metrics::counter::Counter;
pub use prometheus_client::metrics::family::Family;
pub use prometheus_client::metrics::gauge::Gauge;
pub use prometheus_client::metrics::histogram::Histogram;
pub use prometheus_client::registry::{Registry, Unit};
// The derive macro of labels names this crate.
pub use prometheus_client;

pub use process::Process;
pub use serve::{PATH, spawn};
pub use sheet::{Buckets, Label, Sheet};

/// Upper bounds of durations of calls and steps, seconds.
pub const DURATIONS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// A registry with the metrics of the process, and name and version of the program.
pub fn registry(program: &'static str, version: &'static str) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Process::new(program, version)));
    registry
}
