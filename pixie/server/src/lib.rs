//! `metalmesh-pixie`: DHCP, TFTP and HTTP for the machines of one partition.
//!
//! The decisions are in `pixie-boot`; here are sockets, files and the clock. One DHCP task per
//! network, one TFTP task, one HTTP listener and one router advertiser each, all in one
//! `JoinSet` under one cancellation token; a task that fails ends the process.
//!
//! Invariants:
//! - a lease is on disk before it is acknowledged;
//! - known machines boot while control is away, from the last desired state on disk; only the
//!   boot ticket needs control (503 with `Retry-After` until it is back);
//! - the installer that the partition names is served only when kernel and image have come whole,
//!   and never in part another's;
//! - what pixie serves over plain HTTP is public; the ticket is the one secret, and it goes once,
//!   to the address that holds the lease of the machine that booted;
//! - every queue, body, transfer and connection count has a named bound.
//!
//! Entry points: [`Config`], [`Pixie`].

pub mod clock;
pub mod config;
pub mod control;
mod dhcp;
mod http;
mod installer;
mod leasefile;
pub mod mesh;
mod ndp;
mod netdev;
mod ra;
mod report;
mod service;
mod spool;
mod state;
mod tftp;

pub use config::Config;
pub use installer::FetchSetupError;
pub use service::{DesiredSink, Pixie, PixieError};
