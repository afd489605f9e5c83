//! The link over real QUIC on loopback: who gets in, what ends a session, what survives.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "modules of one test"
)]

mod admission;
mod attacks;
mod calls;
mod fixture;
mod streams;
mod trust;
