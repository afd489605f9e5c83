//! The audit trail.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
