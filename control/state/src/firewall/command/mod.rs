//! Commands about firewalls and their rules.

mod release;
mod replace;
mod report;
mod rules;

pub use release::*;
pub use replace::*;
pub use report::*;
pub use rules::*;
