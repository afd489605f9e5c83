//! The agent's rules in the real kernel: a router in a network namespace, with a private host and a
//! host outside, and packets between them. Needs root and nft; says so and passes without.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers")]

mod agent;
mod apply;
mod clusters;
mod counters;
mod dns_site;
mod drops;
mod flows;
mod fragments;
mod input;
mod killed;
mod load;
mod names;
mod namespace;
mod nat;
mod packets;
mod redirects;
mod routes;
mod site;
mod spoofed;
mod text;
mod update;
