//! No elevation: a new or changed token stays within the token that asks for it and within what
//! its user may do.

use std::collections::BTreeMap;

use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::{Method, Scope, method};

use crate::decide::decide;
use crate::permissions::ALL;
use crate::roles::{ContractRole, at_least, project_role, tenant_role};
use crate::standing::platform_role;
use crate::{Directory, Principal, PrincipalKind, TokenRights};

/// A refused grant: the right exceeds those of the granting token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{right} exceeds the rights of the token that asks for it")]
pub struct Elevation {
    /// The right in words, for example `project role owner on "*"`.
    pub right: String,
}

/// Checks that `who` may create a token with the rights `wanted` for itself.
///
/// Admin rights come from the caller's API token, or from the user's role in the provider's
/// tenant: its owners may order up to ADMIN_EDITOR, editors and viewers up to ADMIN_VIEWER.
/// An admin editor may grant everything.
///
/// # Errors
/// The first right that exceeds those of the caller.
pub fn may_grant(
    who: &Principal,
    directory: &dyn Directory,
    wanted: &TokenRights,
) -> Result<(), Elevation> {
    let admin = admin_reach(who, directory);
    if admin == Some(AdminRole::Editor) {
        return Ok(());
    }
    let granter = Granter {
        who,
        directory,
        admin,
    };
    let check = |ok: bool, right: &dyn Fn() -> String| {
        if ok {
            Ok(())
        } else {
            Err(Elevation { right: right() })
        }
    };
    if let Some(role) = wanted.admin_role {
        check(admin.is_some_and(|a| at_least(a, role)), &|| {
            format!("admin role {role:?}")
        })?;
    }
    if let Some(role) = wanted.infra_role {
        check(granter.infra(role), &|| format!("infra role {role:?}"))?;
    }
    for (tenant, role) in &wanted.tenant_roles {
        let ok = granter.tenant(tenant, *role, &wanted.tenant_roles);
        check(ok, &|| format!("tenant role {role:?} on {tenant:?}"))?;
    }
    for (project, role) in &wanted.project_roles {
        let ok = granter.project(project, *role, &wanted.project_roles);
        check(ok, &|| format!("project role {role:?} on {project:?}"))?;
    }
    for (machine, role) in &wanted.machine_roles {
        let ok = granter.machine(machine, *role, &wanted.machine_roles);
        check(ok, &|| format!("machine role {role:?} on {machine:?}"))?;
    }
    for (subject, paths) in wanted.permissions.iter() {
        for path in paths {
            let ok = method(path).is_some_and(|m| granter.call(m, subject));
            check(ok, &|| format!("{path} on {subject:?}"))?;
        }
    }
    Ok(())
}

/// The strongest admin role that the caller may grant.
fn admin_reach(who: &Principal, directory: &dyn Directory) -> Option<AdminRole> {
    match who.kind {
        PrincipalKind::Anonymous => None,
        PrincipalKind::Api => who.rights.admin_role,
        PrincipalKind::User => platform_role(directory, &who.user),
    }
}

/// Roles by subject, as a token stores them.
type Roles<R> = BTreeMap<String, R>;

/// `true` if the roles `own` reach as far as `role` on `subject`. A narrower entry overrides `*`, so
/// granting `*` needs each subject with a weaker entry to be named in `wanted` too, where its entry
/// is compared by itself. Otherwise the new token would reach by `*` what the narrower entry denies.
fn carries<R: ContractRole>(own: &Roles<R>, subject: &str, role: R, wanted: &Roles<R>) -> bool {
    let reaches = |own: &R| at_least(*own, role);
    let entry = own.get(subject).or_else(|| own.get(ALL));
    let is_left_out = |(named, own): (&String, &R)| !reaches(own) && !wanted.contains_key(named);
    entry.is_some_and(reaches) && !(subject == ALL && own.iter().any(is_left_out))
}

/// `true` if the roles permit a method on every subject: by `*` and by each narrower entry.
fn reaches_all<R: ContractRole>(own: &Roles<R>, roles: &[R]) -> bool {
    own.contains_key(ALL) && own.values().all(|role| roles.contains(role))
}

/// The caller that grants, with its current reach.
struct Granter<'a> {
    who: &'a Principal,
    directory: &'a dyn Directory,
    admin: Option<AdminRole>,
}

impl Granter<'_> {
    fn api(&self) -> bool {
        self.who.kind == PrincipalKind::Api
    }

    fn user(&self) -> bool {
        self.who.kind == PrincipalKind::User
    }

    /// `true` if an admin viewer grants a viewer role, which it may for any kind of role.
    fn as_viewer<R: ContractRole>(&self, role: R, viewer: R) -> bool {
        self.admin == Some(AdminRole::Viewer) && role == viewer
    }

    fn infra(&self, role: InfraRole) -> bool {
        self.as_viewer(role, InfraRole::Viewer)
            || self.api()
                && self
                    .who
                    .rights
                    .infra_role
                    .is_some_and(|own| at_least(own, role))
    }

    fn machine(&self, machine: &str, role: MachineRole, wanted: &Roles<MachineRole>) -> bool {
        let rights = &self.who.rights.machine_roles;
        self.as_viewer(role, MachineRole::Viewer)
            || self.api() && carries(rights, machine, role, wanted)
    }

    fn tenant(&self, tenant: &str, role: TenantRole, wanted: &Roles<TenantRole>) -> bool {
        let now = tenant_role(self.directory, &self.who.user, tenant);
        let token = carries(&self.who.rights.tenant_roles, tenant, role, wanted);
        self.as_viewer(role, TenantRole::Viewer) || self.member(tenant, role, now, token)
    }

    fn project(&self, project: &str, role: ProjectRole, wanted: &Roles<ProjectRole>) -> bool {
        let now = project_role(self.directory, &self.who.user, project);
        let token = carries(&self.who.rights.project_roles, project, role, wanted);
        self.as_viewer(role, ProjectRole::Viewer) || self.member(project, role, now, token)
    }

    /// Checks a role of a membership. `*` does not exceed the user: it is resolved against the
    /// current memberships at each use.
    fn member<R: ContractRole>(&self, subject: &str, role: R, now: Option<R>, token: bool) -> bool {
        let user = subject == ALL || now.is_some_and(|now| at_least(now, role));
        let session = self.user() || self.api() && token;
        role.number() != 0 && user && session
    }

    /// `true` if the caller may list this method for this subject in a new token.
    fn call(&self, method: &'static Method, subject: &str) -> bool {
        let rights = &self.who.rights;
        let reached = match &method.scope {
            Scope::Public => true,
            Scope::Tenant(roles) if subject == ALL => {
                self.user() || reaches_all(&rights.tenant_roles, roles)
            }
            Scope::Project(roles) if subject == ALL => {
                self.user() || reaches_all(&rights.project_roles, roles)
            }
            Scope::Machine(roles) if subject == ALL => reaches_all(&rights.machine_roles, roles),
            // Calls in this scope name no subject. With one, the decision would use the entry that
            // the token has for that subject, which no real call ever consults.
            Scope::Own if self.api() => decide(method, self.who, self.directory, None).is_ok(),
            _ => decide(method, self.who, self.directory, Some(subject)).is_ok(),
        };
        let listed = match &method.scope {
            Scope::Own => rights.permissions.allow(subject, method.index),
            _ => subject == ALL && rights.permissions.list(ALL, method.index),
        };
        reached || self.api() && listed || self.admin_views(method, subject)
    }

    /// `true` if an admin viewer may call the method: a log-in whose user may order that role may list
    /// its methods too.
    fn admin_views(&self, method: &'static Method, subject: &str) -> bool {
        let Some(role) = self.admin else {
            return false;
        };
        let viewer = Principal {
            user: self.who.user.clone(),
            kind: PrincipalKind::Api,
            rights: TokenRights {
                admin_role: Some(role),
                ..TokenRights::default()
            },
            ..Principal::default()
        };
        decide(method, &viewer, self.directory, Some(subject)).is_ok()
    }
}
