//! The packet filter of a leaf against a firewall and a machine that send what they must not, on a
//! real kernel with real nftables. Needs root, FRR and nftables; says so and passes without.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's helpers"
)]

mod answers;
mod asking;
#[allow(dead_code, reason = "shared with the tests of FRR")]
#[path = "../frr/daemons.rs"]
mod daemons;
mod drift;
mod flood;
mod forged;
mod frames;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../leaf/hosts.rs"]
mod hosts;
mod leaf;
mod link_groups;
mod loops;
mod macs;
mod neighbour_table;
mod packets;
mod reach;
mod redirects;
mod storms;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../leaf/switch.rs"]
mod switch;
mod tap;
mod tenants;
mod tunnels;
