//! The agent against a control of the test's own, on a switch in memory and on a real one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's helpers"
)]

mod drift;
mod faults;
mod fixture;
mod follow;
mod linux;
mod offline;
mod relay;
#[path = "../../../update/tests/replacing/mod.rs"]
mod replacing;
mod telemetry;
mod update;
