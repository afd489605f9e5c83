//! Commands about node allocations.

mod change;
mod create;

pub use change::*;
pub use create::*;
