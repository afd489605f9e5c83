//! Commands about tenants, projects, invites and quotas.

mod invite;
mod project;
mod project_member;
mod quota;
mod tenant;
mod tenant_member;

pub use invite::*;
pub use project::*;
pub use project_member::*;
pub use quota::*;
pub use tenant::*;
pub use tenant_member::*;
