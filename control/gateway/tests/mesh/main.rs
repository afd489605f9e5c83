//! The gateway over a real store and real QUIC on loopback.

#![allow(unreachable_pub, reason = "modules of one test")]

mod enrol;
mod fixture;
mod life;
mod reports;
