//! The cluster itself: control nodes, time, settings, site policies, components, restores.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod read;
