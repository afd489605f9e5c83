//! Statistics: accounting, drops, and hits of each rule.
//!
//! The agent reads the kernel's counters at most every [`SAMPLE_INTERVAL`], by one dump, and keeps
//! the result for whoever asks: the metrics' listener, and reports. The counters themselves are the
//! kernel's and go on when the agent ends. A counter that the agent must create again, because
//! somebody removed the table, begins where it was last read.

mod collector;
mod listener;
mod sampler;
mod statistics;
mod traffic;

pub use collector::FirewallCollector;
pub use listener::StatisticsListener;
pub use sampler::{SAMPLE_INTERVAL, Sampler, now_ms};
pub use statistics::{RuleStatistics, Statistics};
pub use traffic::{DeviceStatistics, TrafficValue};
