//! Commands about switches.

mod change;
mod replace;
mod report;

pub use change::*;
pub use replace::*;
pub use report::*;
