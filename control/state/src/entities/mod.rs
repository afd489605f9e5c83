//! What the state holds: one file per kind of object.

mod allocation;
mod events;
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
mod vpn;

pub use allocation::*;
pub use events::*;
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
pub use vpn::*;
