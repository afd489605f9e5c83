//! FRR's configuration: tables, random configurations on a fake, and real daemons in network
//! namespaces.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's helpers"
)]

mod attacks;
mod daemons;
mod fake;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../leaf/hosts.rs"]
mod hosts;
mod live;
mod properties;
mod random;
mod readings;
mod sample;
mod sessions;
mod tables;
mod targets;
