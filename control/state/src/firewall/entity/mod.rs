//! Sets of firewall rules, their history, the status of firewalls, and the release of their agent.

mod agent_part;
mod history;
mod release;
mod rule_set;
mod set_key;
mod status;

pub use agent_part::*;
pub use history::*;
pub use release::*;
pub use rule_set::*;
pub use set_key::*;
pub use status::*;
