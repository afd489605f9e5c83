//! No elevation: a new or changed token stays within the token that asks for it and within what
//! its user may do.

use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, TenantRole};
use proto_public::{Method, Scope, method};

use crate::decide::decide;
use crate::principal::ALL;
use crate::roles::{Role, at_least, project_role, tenant_role};
use crate::{Directory, Principal, Rights, TokenKind};

/// The right that may not be handed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{right} exceeds the rights of the token that asks for it")]
pub struct Elevation {
    /// Such as `project role owner on "*"`.
    pub right: String,
}

/// Whether `who` may make a token with the rights `wanted` for itself.
///
/// Admin rights come from the caller's API token, or from the user's role in the provider's
/// tenant: its owners may order up to ADMIN_EDITOR, editors and viewers up to ADMIN_VIEWER.
/// An admin editor may grant everything.
pub fn may_grant(
    who: &Principal,
    directory: &dyn Directory,
    wanted: &Rights,
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
        let ok = granter.tenant(tenant, *role);
        check(ok, &|| format!("tenant role {role:?} on {tenant:?}"))?;
    }
    for (project, role) in &wanted.project_roles {
        let ok = granter.project(project, *role);
        check(ok, &|| format!("project role {role:?} on {project:?}"))?;
    }
    for (machine, role) in &wanted.machine_roles {
        let ok = granter.machine(machine, *role);
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

fn admin_reach(who: &Principal, directory: &dyn Directory) -> Option<AdminRole> {
    match who.kind {
        TokenKind::Anonymous => None,
        TokenKind::Api => who.rights.admin_role,
        TokenKind::User => match directory.provider_role(&who.user)? {
            TenantRole::Owner => Some(AdminRole::Editor),
            TenantRole::Editor | TenantRole::Viewer => Some(AdminRole::Viewer),
            TenantRole::Guest | TenantRole::Unspecified => None,
        },
    }
}

struct Granter<'a> {
    who: &'a Principal,
    directory: &'a dyn Directory,
    admin: Option<AdminRole>,
}

impl Granter<'_> {
    fn api(&self) -> bool {
        self.who.kind == TokenKind::Api
    }

    fn user(&self) -> bool {
        self.who.kind == TokenKind::User
    }

    /// An admin viewer may hand on the viewer's part of any kind.
    fn as_viewer<R: Role>(&self, role: R, viewer: R) -> bool {
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

    fn machine(&self, machine: &str, role: MachineRole) -> bool {
        let rights = &self.who.rights.machine_roles;
        let own = rights.get(machine).or_else(|| rights.get(ALL)).copied();
        self.as_viewer(role, MachineRole::Viewer)
            || self.api() && own.is_some_and(|own| at_least(own, role))
    }

    fn tenant(&self, tenant: &str, role: TenantRole) -> bool {
        let rights = &self.who.rights.tenant_roles;
        let token = rights.get(tenant).or_else(|| rights.get(ALL)).copied();
        let now = tenant_role(self.directory, &self.who.user, tenant);
        self.as_viewer(role, TenantRole::Viewer) || self.member(tenant, role, now, token)
    }

    fn project(&self, project: &str, role: proto_public::api::v2::ProjectRole) -> bool {
        let rights = &self.who.rights.project_roles;
        let token = rights.get(project).or_else(|| rights.get(ALL)).copied();
        let now = project_role(self.directory, &self.who.user, project);
        let viewer = proto_public::api::v2::ProjectRole::Viewer;
        self.as_viewer(role, viewer) || self.member(project, role, now, token)
    }

    /// `*` is no elevation over the user: it is resolved against its memberships when used.
    fn member<R: Role>(&self, subject: &str, role: R, now: Option<R>, token: Option<R>) -> bool {
        let user = subject == ALL || now.is_some_and(|now| at_least(now, role));
        let session = self.user() || self.api() && token.is_some_and(|t| at_least(t, role));
        role.number() != 0 && user && session
    }

    fn call(&self, method: &'static Method, subject: &str) -> bool {
        let permissions = &self.who.rights.permissions;
        match &method.scope {
            Scope::Public => true,
            Scope::Tenant(roles) if subject == ALL => {
                let token = self.who.rights.tenant_roles.get(ALL);
                let role = token.is_some_and(|role| roles.contains(role));
                self.admin_views(method, subject)
                    || self.user()
                    || self.api() && (role || permissions.list(ALL, method.index))
            }
            Scope::Project(roles) if subject == ALL => {
                let token = self.who.rights.project_roles.get(ALL);
                let role = token.is_some_and(|role| roles.contains(role));
                self.admin_views(method, subject)
                    || self.user()
                    || self.api() && (role || permissions.list(ALL, method.index))
            }
            Scope::Own if self.api() => {
                permissions.list_any(method.index) || self.admin_views(method, subject)
            }
            _ => {
                decide(method, self.who, self.directory, Some(subject)).is_ok()
                    || self.admin_views(method, subject)
            }
        }
    }

    /// What an admin viewer may call, its user's log-in may write into a token too.
    fn admin_views(&self, method: &'static Method, subject: &str) -> bool {
        let Some(role) = self.admin else {
            return false;
        };
        let viewer = Principal {
            user: self.who.user.clone(),
            kind: TokenKind::Api,
            rights: Rights {
                admin_role: Some(role),
                ..Rights::default()
            },
            ..Principal::default()
        };
        decide(method, &viewer, self.directory, Some(subject)).is_ok()
    }
}
