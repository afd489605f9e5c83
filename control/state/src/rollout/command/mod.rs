//! Commands about rollouts.

mod decide;
mod report;
mod start;

pub use decide::*;
pub use report::*;
pub use start::*;
