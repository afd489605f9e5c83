//! Telemetry of every program: [`metrics`] for Prometheus, [`traces`] for a collector of
//! OpenTelemetry.
//!
//! Invariants: no label and no span holds a secret; work never waits for whoever collects.

pub mod metrics;
pub mod traces;
