//! A whole data centre in one process: machines with BMCs, PXE firmware and installers, and leaf
//! switches, spread over partitions, against a real `metalmeshd`.
//!
//! Everything that talks to control is the product's own code: enrolment, sessions and renewal
//! (`agents-kit`), the switch, BMC and PXE agents as they are, hammer's ledger, calls and events.
//! What is simulated is behind them: switches in memory, BMCs that answer Redfish ([`bmc`])
//! or IPMI ([`ipmi`]) on loopback, firmware that speaks DHCP through a relay, TFTP and HTTP ([`netboot`]), disks that
//! take a stated time to wipe and to install ([`delays`]).
//!
//! Invariants of the product are checked all along against what really happened to each machine
//! ([`truth`]): a violation ends the run and tells the machine's history.
//!
//! Needs neither root nor KVM: partitions are told apart by addresses of 127.0.0.0/8.
//!
//! Entry point: [`run`].

mod agents;
mod bench;
mod bmc;
mod catalogue;
mod chaos;
mod control;
mod delays;
mod drawn;
mod fabric;
mod hammer;
mod http;
mod ipmi;
mod ipmi_commands;
mod machine;
mod netboot;
mod nonce;
mod options;
mod plan;
mod procfs;
mod relay;
mod report;
mod run;
mod tenants;
mod tftp;
mod truth;
mod world;
mod world_start;

pub use bench::{BenchArgs, bench};
pub use delays::Delays;
pub use options::{Options, Output};
pub use report::Report;
pub use run::run;
