//! The whole chain: `metalmeshd`, two `metalmesh-core` on leaves with FRR, and machines of two
//! tenants with the same addresses. The test plays boot server, BMCs and installers.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's output is its report"
)]

mod catalogue;
mod control;
mod crossing;
mod cycles;
mod firewall;
mod firewall_system;
mod flow;
mod leaf;
mod life;
mod machine;
mod moves;
mod offline;
mod operator;
mod rack;
mod roles;
mod site;
mod stages;
mod standby;
mod tap;
mod times;
mod usage;
mod wait;

#[allow(dead_code, reason = "shared with the tests of FRR")]
#[path = "../../../../agents/nos/tests/frr/daemons.rs"]
mod daemons;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../../../../agents/nos/tests/leaf/hosts.rs"]
mod hosts;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../../../../agents/nos/tests/leaf/models.rs"]
mod models;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../../../../agents/nos/tests/leaf/switch.rs"]
mod switch;

/// Longest time until something happens in an emulated machine under load.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(240);

/// `false`, with a printed reason, outside the guest.
fn is_guest() -> bool {
    if !tests_fabric::is_guest() {
        println!("SKIPPED: runs in the guest of ./dev fabric");
    }
    tests_fabric::is_guest()
}
