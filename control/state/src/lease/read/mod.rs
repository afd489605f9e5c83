//! Questions about owners and leases.

mod lookup;
mod rights;
mod usage;

pub use lookup::*;
pub(crate) use rights::*;
pub(crate) use usage::*;
