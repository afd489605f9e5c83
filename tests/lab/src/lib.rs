//! The virtual data centre: real programs, real machines, real protocols on one Linux host.
//!
//! A lab is network namespaces (control, a leaf switch, a services host, an exit router, an
//! admin's and a tenant's place, one per BMC), QEMU machines behind BMC emulators, and the
//! programs under test. [`run`] builds it and lets a scenario work in it, [`in_lab`] gives another
//! builder an empty one, [`down`] takes it away.
//!
//! Invariants: everything made is written to the lab's state file first, so that it can be taken
//! away after any end; nothing outside of the lab's own namespaces and directory is changed;
//! waits are conditions with deadlines that a busy machine stretches; passwords are made per lab
//! and live in files of mode 0600.

mod artefacts;
pub mod bmc;
pub mod cgroup;
pub mod chassis;
pub mod cli;
mod control;
pub mod datacentre;
pub mod disk;
mod front;
pub mod helper;
pub mod kvm;
pub mod machine;
pub mod netns;
pub mod process;
mod python;
pub mod scenario;
pub mod serve;
pub mod services;
pub mod state;
pub mod timeline;
pub mod topology;
pub mod wait;

pub use artefacts::{Artefacts, Options, Program};
pub use control::write_certificate;
pub use front::{down, environment, in_lab, list_drills, run, shell, status};

/// Whether this process may make namespaces.
#[must_use]
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
