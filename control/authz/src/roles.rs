//! Order and inheritance of roles: which of two roles is stronger, and which project role a tenant
//! role implies.

use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};

use crate::Directory;

/// A user's role in a tenant: its direct role, else guest through a project of the tenant.
pub fn tenant_role(directory: &dyn Directory, user: &str, tenant: &str) -> Option<TenantRole> {
    directory.tenant_role(user, tenant).or_else(|| {
        directory
            .is_guest(user, tenant)
            .then_some(TenantRole::Guest)
    })
}

/// A user's role in a project: the stronger of its direct role and the one inherited from the
/// tenant. Owner, editor and viewer are inherited, guest is not.
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

/// A role enum of the contract, which numbers its roles from the strongest, 1, to the weakest.
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

/// `true` if `a` is at least as strong as `b`. The unspecified role, 0, is weaker than any other.
pub(crate) fn at_least<R: ContractRole>(a: R, b: R) -> bool {
    a.number() != 0 && (b.number() == 0 || a.number() <= b.number())
}

/// `true` if a user whose current role is `now` still reaches a method that lists `roles`: `now` is
/// at least as strong as the weakest of them. The caller checks the token for an exact match.
pub(crate) fn reaches<R: ContractRole>(now: R, roles: &[R]) -> bool {
    roles.iter().any(|role| at_least(now, *role))
}
