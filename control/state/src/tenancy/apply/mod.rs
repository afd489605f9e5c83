//! Tenants, projects, invites, quotas and budgets: what commands do to them.

pub(crate) mod budget;
pub(crate) mod invite;
pub(crate) mod member;
pub(crate) mod project;
pub(crate) mod quota;
pub(crate) mod tenant;
