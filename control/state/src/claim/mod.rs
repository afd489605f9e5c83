//! Claims: a project asks for a host with certain labels, and gets one without seeing which.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod phase;
pub(crate) mod read;
