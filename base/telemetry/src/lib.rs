//! Telemetry of every program: [`metrics`] for Prometheus, [`traces`] for an OpenTelemetry
//! collector.
//!
//! Invariants:
//! - recording a span never blocks: a span that finds the queue full is dropped and counted;
//! - concurrent scrapes, and scrapes within a second, share one result;
//! - connections for metrics are bounded, in total and per client network;
//! - a trace context from outside is used only if it is a well-formed `traceparent`, and never
//!   raises the number of traces above [`traces::Sampler`]'s rate.

pub mod metrics;
pub mod traces;
