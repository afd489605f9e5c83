//! Commands about tenants, projects, invites and quotas.

mod invite;
mod project;
mod quota;
mod tenant;

pub use invite::*;
pub use project::*;
pub use quota::*;
pub use tenant::*;
