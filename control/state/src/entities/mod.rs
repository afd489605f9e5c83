//! What the state holds: one file per kind of object.

mod allocation;
mod events;
mod inventory;
mod machine;
mod order;
mod records;
mod vpn;

pub use allocation::*;
pub use events::*;
pub use inventory::*;
pub use machine::*;
pub use order::*;
pub use records::*;
pub use vpn::*;
