//! Tenants, projects, invites and quotas.

mod invite;
mod project;
mod quota;
mod tenant;
mod warrant;

pub use invite::*;
pub use project::*;
pub use quota::*;
pub use tenant::*;
pub use warrant::*;
