//! A rack with two leaves, two spines and dual-homed machines of two tenants with the same addresses:
//! who reaches whom, and how long packets are lost when a link or a switch fails.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's output is its report"
)]

mod crossing;
mod drains;
mod ear;
mod faults;
mod filters;
mod floods;
mod packets;
mod provisioning;
mod rack;
mod stream;
mod ways;

#[allow(dead_code, reason = "shared with the tests of FRR")]
#[path = "../../../../agents/nos/tests/frr/daemons.rs"]
mod daemons;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../../../../agents/nos/tests/leaf/fabric.rs"]
mod fabric;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../../../../agents/nos/tests/leaf/hosts.rs"]
mod hosts;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../../../../agents/nos/tests/leaf/models.rs"]
mod models;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../../../../agents/nos/tests/leaf/switch.rs"]
mod switch;

/// `false`, with a printed reason, outside the guest.
fn is_guest() -> bool {
    if !tests_fabric::is_guest() {
        println!("SKIPPED: runs in the guest of ./dev fabric");
    }
    tests_fabric::is_guest()
}
