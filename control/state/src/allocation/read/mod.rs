//! Questions about node allocations.

mod choice;
mod lookup;

pub(crate) use choice::*;
pub use lookup::*;
