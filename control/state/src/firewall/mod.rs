//! Firewall rules: sets of rules with their revisions, and what firewalls report about them.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod name_servers;
pub(crate) mod read;
pub(crate) mod standby;
