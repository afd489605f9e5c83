//! Typed rules: what every source is turned into, and the only input of the compiler.

mod action;
mod id;
mod input;
mod name_resolver;
mod name_selector;
pub mod network;
pub mod prefixes;
mod protocol_match;
mod set;

pub use action::{Action, Direction};
pub use id::{Controller, RuleId};
pub use input::InputPolicy;
pub use name_resolver::NameResolver;
pub use name_selector::{NameSelector, SELECTOR_LEN_MAX};
pub use network::{Network, NetworkKind};
pub use protocol_match::{ProtocolMatch, number as protocol_number, protocol_name};
pub use set::{RateLimit, Rule, RuleSet};
