//! `metalmesh-pixie`: DHCP, TFTP and HTTP for the machines of one partition.
//!
//! The decisions are in `pixie-boot`; this crate has the sockets, files and the clock. Each network
//! has a DHCP task, a TFTP task, an HTTP listener and a router advertiser, all in one `JoinSet`
//! under one cancellation token. A task that fails ends the process.
//!
//! Invariants:
//! - A lease is on disk before it is acknowledged.
//! - Known machines boot while control is away, from the last desired state on disk; only the boot
//!   ticket needs control (503 with `Retry-After` until it is back).
//! - The partition's installer is served only after kernel and image are complete, and never mixed
//!   with another pair.
//! - Everything served over plain HTTP is public except the ticket. That is handed out once per
//!   boot, to the address that holds the lease of the machine that booted.
//! - Every queue, body, transfer and connection count has a named bound.
//!
//! Entry points: [`Config`], [`Pixie`].

mod boot;
pub mod clock;
pub mod config;
pub mod control;
mod desired;
mod dhcp;
mod dhcp_relay;
mod http;
mod installer;
mod leasefile;
pub mod mesh;
mod ndp;
mod netdev;
mod probe;
mod ra;
mod report;
mod service;
mod spool;
mod state;
mod tftp;

pub use config::Config;
pub use installer::FetchSetupError;
pub use probe::SelfProbe;
pub use service::{DesiredSink, Pixie, PixieError};
