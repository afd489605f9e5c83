//! Commands about switches.

mod change;
mod drain;
mod replace;
mod report;

pub use change::*;
pub use drain::*;
pub use replace::*;
pub use report::*;
