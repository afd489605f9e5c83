//! What roles mean: inheritance from tenant to project, and which role is the stronger one.

use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};

use crate::Directory;

/// The role a user has in a tenant: its own, else guest through a project of the tenant.
pub fn tenant_role(directory: &dyn Directory, user: &str, tenant: &str) -> Option<TenantRole> {
    directory.tenant_role(user, tenant).or_else(|| {
        directory
            .is_guest(user, tenant)
            .then_some(TenantRole::Guest)
    })
}

/// The role a user has in a project: the stronger of its own and the one its tenant lends.
/// Owner, editor and viewer of the tenant are that in each project; a guest is nothing.
pub fn project_role(directory: &dyn Directory, user: &str, project: &str) -> Option<ProjectRole> {
    let project = directory.project(user, project)?;
    let lent = directory.tenant_role(user, project.tenant);
    let lent = lent.and_then(|role| match role {
        TenantRole::Owner => Some(ProjectRole::Owner),
        TenantRole::Editor => Some(ProjectRole::Editor),
        TenantRole::Viewer => Some(ProjectRole::Viewer),
        TenantRole::Guest | TenantRole::Unspecified => None,
    });
    match (project.role, lent) {
        (Some(own), Some(lent)) => Some(if at_least(own, lent) { own } else { lent }),
        (own, lent) => own.or(lent),
    }
}

/// Roles of one kind, numbered by the contract from the strongest, 1, to the weakest.
pub(crate) trait ContractRole: Copy + PartialEq {
    /// The contract's number.
    fn number(self) -> i32;
}

macro_rules! role {
    ($($role:ident),*) => {$(
        impl ContractRole for $role {
            fn number(self) -> i32 {
                self as i32
            }
        }
    )*};
}
role!(TenantRole, ProjectRole, AdminRole, InfraRole, MachineRole);

/// Whether `a` is as strong as `b` or stronger. The unspecified role is weaker than any.
pub(crate) fn at_least<R: ContractRole>(a: R, b: R) -> bool {
    a.number() != 0 && (b.number() == 0 || a.number() <= b.number())
}

/// Whether a user who has `now` still reaches a method that lists `roles`: as strong as the
/// weakest of them. The exact match is the token's business.
pub(crate) fn reaches<R: ContractRole>(now: R, roles: &[R]) -> bool {
    roles.iter().any(|role| at_least(now, *role))
}
