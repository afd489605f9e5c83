//! Transitions of tenants, projects, invites, quotas and budgets.

pub(crate) mod budget;
pub(crate) mod invite;
pub(crate) mod member;
pub(crate) mod project;
pub(crate) mod quota;
pub(crate) mod tenant;
