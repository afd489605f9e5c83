//! Plans of every kind of change: a table of named cases, and properties of random states.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers")]

mod cases_bgp;
mod cases_drift;
mod cases_held;
mod cases_inexpressible;
mod cases_packet_filter;
mod cases_ports;
mod cases_refused;
mod cases_segments;
mod chaos;
mod fixture;
mod held;
mod invariants;
mod lower_bound;
mod properties;
mod random;
mod routing;
