//! FRR's configuration: tables, random configurations on a fake, and real daemons in network
//! namespaces.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's helpers"
)]

mod daemons;
mod fake;
mod live;
mod properties;
mod random;
mod sample;
mod sessions;
mod tables;
