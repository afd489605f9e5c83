//! One suite that every back-end passes. Linux needs root; it says so and passes without.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's helpers"
)]

mod back_ends;
#[allow(dead_code, reason = "shared with the tests of FRR")]
#[path = "../frr/daemons.rs"]
mod daemons;
mod drift;
#[allow(dead_code, reason = "shared with the tests of plans")]
#[path = "../plan/fixture.rs"]
mod fixture;
#[path = "../plan/lower_bound.rs"]
mod lower_bound;
mod namespace;
mod orchagent;
#[allow(dead_code, reason = "shared with the tests of plans")]
#[path = "../plan/random.rs"]
mod random;
mod redis;
mod run;
mod sonic;
mod sonic_bgp;
mod sonic_random;
mod sonic_switch;
mod states;
