//! What the state holds: one file per kind of object.

mod agent;
mod allocation;
mod events;
mod identity;
mod image;
mod inventory;
mod layout;
mod machine;
mod network;
mod order;
mod partition;
mod pool;
mod records;
mod size;
mod switch;
mod token;
mod user;
mod vpn;

pub use agent::*;
pub use allocation::*;
pub use events::*;
pub use identity::*;
pub use image::*;
pub use inventory::*;
pub use layout::*;
pub use machine::*;
pub use network::*;
pub use order::*;
pub use partition::*;
pub use pool::*;
pub use records::*;
pub use size::*;
pub use switch::*;
pub use token::*;
pub use user::*;
pub use vpn::*;
