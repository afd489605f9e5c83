//! Tenants, projects, their members, invites and quotas.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod read;
