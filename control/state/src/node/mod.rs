//! Nodes: the part of Ironic's API that a machine does not have by itself.
//!
//! A machine is a node of the same id. A [`NodeRecord`](entity::NodeRecord) holds the fields that only
//! clients of that API write and read; a machine without one is a node with defaults. Everything that
//! a machine has (owner, lessee, class, traits, allocation, power, hardware) stays its own.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod provision;
pub(crate) mod read;
