//! Sets of firewall rules, their history, and the status of firewalls.

mod history;
mod rule_set;
mod set_key;
mod status;

pub use history::*;
pub use rule_set::*;
pub use set_key::*;
pub use status::*;
