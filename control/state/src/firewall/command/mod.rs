//! Commands about firewall rules.

mod replace;
mod report;
mod rules;

pub use replace::*;
pub use report::*;
pub use rules::*;
