//! The agent against a control of the test's own, on a switch in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers")]

mod drift;
mod faults;
mod fixture;
mod follow;
mod offline;
