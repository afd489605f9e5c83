//! Node allocations.

mod node_allocation;

pub use node_allocation::*;
