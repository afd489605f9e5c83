//! Commands about rollouts.

mod clear;
mod decide;
mod report;
mod start;

pub use clear::*;
pub use decide::*;
pub use report::*;
pub use start::*;
