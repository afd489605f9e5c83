//! An agent against a control of the test's own, over real QUIC on loopback.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "modules of one test"
)]

mod desired;
mod fixture;
mod follow;
mod identity;
