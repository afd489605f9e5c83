//! Two leaves and a spine that are machines with a kernel of their own: they lose their power, and
//! come back from what is on their disks.
//!
//! This program runs in a fourth machine with control and, as namespaces, the machines of two tenants
//! with the same addresses. Its network cards are the other ends of the leaves' ports.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's output is its report"
)]

mod console;
mod leaf;
mod midway;
mod power;
mod rack;
mod reboot;
mod spine;
mod switches;
mod traffic;

#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/catalogue.rs"]
mod catalogue;
#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/control.rs"]
mod control;
#[path = "../tenancy/crossing.rs"]
mod crossing;
#[allow(dead_code, reason = "shared with the tests of FRR")]
#[path = "../../../../agents/nos/tests/frr/daemons.rs"]
mod daemons;
#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/firewall_system.rs"]
mod firewall_system;
#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/flow.rs"]
mod flow;
#[allow(dead_code, reason = "shared with the tests of leaves")]
#[path = "../../../../agents/nos/tests/leaf/hosts.rs"]
mod hosts;
#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/life.rs"]
mod life;
#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/machine.rs"]
mod machine;
#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/roles.rs"]
mod roles;
#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/site.rs"]
mod site;
#[path = "../tenancy/stages.rs"]
mod stages;
#[path = "../matrix/stream.rs"]
mod stream;
#[allow(dead_code, reason = "shared with the tests of the whole chain")]
#[path = "../tenancy/tap.rs"]
mod tap;
#[path = "../tenancy/times.rs"]
mod times;
#[path = "../tenancy/wait.rs"]
mod wait;

/// Longest time until something happens in four emulated machines under load.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(900);
