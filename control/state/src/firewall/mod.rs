//! Firewalls: sets of rules with their revisions, reports, the release of their agent, and which of a
//! project's is active.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod fault;
pub(crate) mod health;
pub(crate) mod name_servers;
pub(crate) mod read;
pub(crate) mod replacement;
pub(crate) mod role;
pub(crate) mod standby;
