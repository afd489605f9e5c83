//! Callers and their credentials: users, tokens, join tickets, certificates, the authority,
//! identities of agents.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod read;
