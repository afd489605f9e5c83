//! Transitions of users, tokens, tickets, certificates and the authority.

pub(crate) mod ca;
pub(crate) mod certificate;
pub(crate) mod identity;
pub(crate) mod issue;
pub(crate) mod join_ticket;
pub(crate) mod ticket;
pub(crate) mod token;
pub(crate) mod user;
