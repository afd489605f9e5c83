//! What tests of several crates share: permits for what they seed, stores to seed, and the objects
//! that they seed them with.

pub mod objects;
mod permits;
mod stores;

pub use permits::permit_for;
pub use stores::{CLUSTER, announcement, propose, restore_into};
