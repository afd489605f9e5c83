//! How the audit trail grows, and what of it is kept.

pub(crate) mod retention;
pub(crate) mod trail;
