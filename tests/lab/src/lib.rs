//! The virtual data centre: namespaces, switches, chassis and machines.
#![allow(dead_code)]
pub mod bmc;
pub mod chassis;
pub mod disk;
pub mod helper;
pub mod kvm;
pub mod machine;
pub mod netns;
pub mod process;
pub mod serve;
pub mod state;
pub mod timeline;
pub mod topology;
pub mod wait;

/// Whether this process may make namespaces.
#[must_use]
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
