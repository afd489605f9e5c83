//! What the state holds: one file per kind of object.

mod agent;
mod allocation;
mod events;
mod image;
mod inventory;
mod layout;
mod machine;
mod meta;
mod network;
mod node;
mod order;
mod partition;
mod quota;
mod records;
mod size;
mod switch;
mod tenancy;
mod token;

pub use agent::*;
pub use allocation::*;
pub use events::*;
pub use image::*;
pub use inventory::*;
pub use layout::*;
pub use machine::*;
pub use meta::*;
pub use network::*;
pub use node::*;
pub use order::*;
pub use partition::*;
pub use quota::*;
pub use records::*;
pub use size::*;
pub use switch::*;
pub use tenancy::*;
pub use token::*;
