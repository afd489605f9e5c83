//! Leaves with VRFs, BGP and EVPN on real kernels and real FRR: one network namespace per switch
//! and host. Needs root, FRR and a kernel with VRFs; says what is missing and passes without.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's helpers"
)]

#[allow(dead_code, reason = "shared with the tests of FRR")]
#[path = "../frr/daemons.rs"]
mod daemons;
mod drift;
mod fabric;
mod hosts;
mod models;
mod packets;
mod steps;
mod switch;
