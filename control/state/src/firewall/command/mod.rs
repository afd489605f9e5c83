//! Commands about firewall rules.

mod report;
mod rules;

pub use report::*;
pub use rules::*;
