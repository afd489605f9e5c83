//! Commands about rollouts.

mod decide;
mod start;

pub use decide::*;
pub use start::*;
