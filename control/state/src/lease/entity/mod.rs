//! Leases of machines.

mod lease;

pub use lease::*;
