//! Machines: what they are, who has them, and what became of them.

mod allocation;
mod bmc;
mod condition;
mod events;
mod idempotency;
mod inventory;
mod machine;
mod order;
mod phase;
mod vpn;
mod wipe;

pub use allocation::*;
pub use bmc::*;
pub use condition::*;
pub use events::*;
pub use idempotency::*;
pub use inventory::*;
pub use machine::*;
pub use order::*;
pub use phase::*;
pub use vpn::*;
pub use wipe::*;
