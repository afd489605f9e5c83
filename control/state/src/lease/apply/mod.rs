//! Transitions of owners and leases.

pub(crate) mod end;
pub(crate) mod expiry;
pub(crate) mod grant;
pub(crate) mod node;
pub(crate) mod owner;
pub(crate) mod terms;
pub(crate) mod transfer;
