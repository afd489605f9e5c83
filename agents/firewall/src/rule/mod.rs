//! Typed rules: what every source is turned into, and the only input of the compiler.

mod id;
mod input;
mod name_resolver;
mod name_selector;
pub mod network;
mod set;

pub use id::{Controller, RuleId};
pub use input::InputPolicy;
pub use name_resolver::NameResolver;
pub use name_selector::NameSelector;
pub use network::{Network, NetworkKind};
pub use proto_firewall::{
    Action, Direction, ProtocolMatch, prefixes, protocol_name, protocol_number,
};
pub use set::{RateLimit, Rule, RuleSet};
