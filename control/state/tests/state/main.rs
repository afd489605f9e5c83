//! The state machine from outside: commands in, tables and replies out.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests stop at the first surprise"
)]

mod agents;
mod allocation;
mod astray;
mod audit;
mod ca;
mod identity;
mod life;
mod networks;
mod nonce;
mod policy;
mod properties;
mod quota;
mod scale;
mod storage;
mod switches;
mod tenancy;
mod traces;
mod users;
mod vpn;
mod watch;
mod world;
