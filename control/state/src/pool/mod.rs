//! Pools of hosts that tenants claim, and the policies that admit projects to them.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod read;
