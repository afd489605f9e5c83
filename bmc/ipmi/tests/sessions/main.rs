//! Sessions with a simulated BMC.

#![expect(
    clippy::expect_used,
    reason = "a test ends where its ground is missing"
)]

mod bmc;
mod busy;
mod dcmi;
mod privilege;
