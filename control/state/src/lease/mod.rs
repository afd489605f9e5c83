//! Leases: owners of machines, and the projects that use them until a date.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod read;
