//! The gateway over a real store and real QUIC on loopback.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "modules of one test"
)]

mod ca;
mod catalogue;
mod enrol;
mod fixture;
mod life;
mod nonce;
mod reports;
mod tpm;
