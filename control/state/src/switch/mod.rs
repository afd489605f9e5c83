//! Switches: their ports, what they report, and one in the place of another.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod read;
