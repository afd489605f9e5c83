//! Machines: inventory, phases, allocations, orders to BMCs, events, cables, boots.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod phase;
pub(crate) mod read;
