//! The gateway over a real store and real QUIC on loopback.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "modules of one test"
)]

mod audit;
mod boot;
mod ca;
mod cables;
mod catalogue;
mod draw;
mod enrol;
mod firewall;
mod firewall_agent;
mod firewall_names;
mod firewall_questions;
mod firewall_release;
mod fixture;
mod hammer;
mod life;
mod matrix;
mod nonce;
mod rates;
mod reports;
mod restored;
mod samples;
mod segment;
mod tpm;
mod update;
