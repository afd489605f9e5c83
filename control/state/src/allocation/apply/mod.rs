//! Transitions of node allocations.

pub(crate) mod change;
pub(crate) mod create;
mod names;
