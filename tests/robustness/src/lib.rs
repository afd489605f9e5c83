//! Real clusters under real faults.
//!
//! A [`Site`] is a cluster of `metalmeshd` processes, each in a network namespace of its own, on
//! which a [`Workload`] of clients reads and writes registers through the public API while a test
//! kills, stops, cuts off and starves nodes. What the clients saw must be linearizable: [`check`].
//! [`Watchers`] are told of all changes meanwhile; what they were told must be in order, once,
//! whole, without a gap, and fit what the clients saw: [`check_told`].
//!
//! Needs root for the namespaces; says so and passes without.

mod cluster;
mod history;
mod linearizable;
mod load;
mod site;
mod snapshots;
mod told;
mod watching;
mod workload;

pub use cluster::{Cluster, Node};
pub use history::{Action, History, Op, Value};
pub use linearizable::{Violation, check};
pub use load::{Clients, Watchers};
pub use site::{Site, next_program};
pub use told::{Change, Stretch, Untrue, check_told};
pub use watching::{Told, watch};
pub use workload::Workload;

/// Says why nothing can be tested here, if so.
pub fn skipped() -> bool {
    let missing = ["ip", "nsenter", "unshare"].iter().find(|program| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&path).any(|dir| dir.join(program).exists())
    });
    match missing {
        Some(program) => eprintln!("SKIPPED: {program} is not installed"),
        None if !tests_lab::is_root() => eprintln!("SKIPPED: network namespaces need root"),
        None => return false,
    }
    true
}
