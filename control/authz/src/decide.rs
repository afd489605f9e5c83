//! The decision of the table: method, caller and subject in, permit or refusal out.

use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::{Method, Request, Scope, method};

use crate::permissions::ALL;
use crate::roles::{ContractRole, project_role, reaches, tenant_role};
use crate::{Denied, Directory, Permit, Principal, PrincipalKind};

/// Decides a typed request; method and subject come from its type.
pub fn authorise<R: Request>(
    who: &Principal,
    directory: &dyn Directory,
    request: &R,
) -> Result<Permit, Denied> {
    decide(R::method(), who, directory, request.subject())
}

/// Decides a call by its path; `subject` is the value of the request's subject field, where the
/// method's scope has one ([`Scope::subject_field`]).
pub fn authorise_path(
    path: &str,
    who: &Principal,
    directory: &dyn Directory,
    subject: Option<&str>,
) -> Result<Permit, Denied> {
    let method = method(path).ok_or_else(|| Denied::UnknownMethod(path.to_owned()))?;
    decide(method, who, directory, subject)
}

/// Decides a call of a method that is known already; `subject` as in [`authorise_path`].
pub fn authorise_method(
    method: &'static Method,
    who: &Principal,
    directory: &dyn Directory,
    subject: Option<&str>,
) -> Result<Permit, Denied> {
    decide(method, who, directory, subject)
}

pub(crate) fn decide(
    method: &'static Method,
    who: &Principal,
    directory: &dyn Directory,
    subject: Option<&str>,
) -> Result<Permit, Denied> {
    let permit = || Permit::new(method, who, subject);
    if method.scope == Scope::Public {
        return Ok(permit());
    }
    if who.kind == PrincipalKind::Anonymous {
        return Err(Denied::Unauthenticated);
    }
    if is_admin(method, who) {
        return Ok(permit());
    }
    let subject = subject.unwrap_or_default();
    let case = Case {
        method,
        who,
        directory,
        subject,
    };
    match case.allowed() {
        Ok(true) => Ok(permit()),
        // An admin viewer sees every object, so "not found" would be a lie to it.
        Err(Denied::NotFound { .. }) if case.views_all() => Err(Denied::forbidden(method)),
        Ok(false) => Err(Denied::forbidden(method)),
        Err(denied) => Err(denied),
    }
}

/// `true` if the admin role alone permits the call: an admin editor may call every method, an admin
/// viewer every method that lists a viewer role.
fn is_admin(method: &Method, who: &Principal) -> bool {
    if who.kind != PrincipalKind::Api {
        return false;
    }
    match who.rights.admin_role {
        Some(AdminRole::Editor) => true,
        Some(AdminRole::Viewer) => match &method.scope {
            Scope::Public | Scope::Own => true,
            Scope::Tenant(roles) => roles.contains(&TenantRole::Viewer),
            Scope::Project(roles) => roles.contains(&ProjectRole::Viewer),
            Scope::Machine(roles) => roles.contains(&MachineRole::Viewer),
            Scope::Admin(roles) => roles.contains(&AdminRole::Viewer),
            Scope::Infra(roles) => roles.contains(&InfraRole::Viewer),
        },
        Some(AdminRole::Unspecified) | None => false,
    }
}

/// One call to decide.
struct Case<'a> {
    method: &'static Method,
    who: &'a Principal,
    directory: &'a dyn Directory,
    subject: &'a str,
}

impl Case<'_> {
    fn allowed(&self) -> Result<bool, Denied> {
        match &self.method.scope {
            Scope::Public => Ok(true),
            Scope::Own => Ok(self.who.kind == PrincipalKind::User || self.listed()),
            Scope::Tenant(roles) => self.tenant(roles),
            Scope::Project(roles) => self.project(roles),
            Scope::Machine(roles) => self.machine(roles),
            Scope::Infra(roles) => Ok(self.infra(roles)),
            Scope::Admin(_) => Ok(self.listed()),
        }
    }

    fn views_all(&self) -> bool {
        self.who.kind == PrincipalKind::Api && self.who.rights.admin_role == Some(AdminRole::Viewer)
    }

    /// `true` if the token lists this method, for this subject or for all subjects.
    fn listed(&self) -> bool {
        self.who.kind == PrincipalKind::Api
            && self
                .who
                .rights
                .permissions
                .allow(self.subject, self.method.index)
    }

    fn tenant(&self, roles: &[TenantRole]) -> Result<bool, Denied> {
        let now = tenant_role(self.directory, &self.who.user, self.subject);
        let rights = &self.who.rights.tenant_roles;
        let token = rights
            .get(self.subject)
            .or_else(|| rights.get(ALL))
            .copied();
        self.member("tenant", roles, now, token)
    }

    fn project(&self, roles: &[ProjectRole]) -> Result<bool, Denied> {
        let now = self
            .of_component()
            .or_else(|| project_role(self.directory, &self.who.user, self.subject));
        let rights = &self.who.rights.project_roles;
        let token = rights
            .get(self.subject)
            .or_else(|| rights.get(ALL))
            .copied();
        self.member("project", roles, now, token)
    }

    /// The role of a project component in its own project. A component has no user whose membership
    /// could be looked up, so it counts as an editor while its project exists.
    fn of_component(&self) -> Option<ProjectRole> {
        let own = self.who.rights.component.as_deref()?;
        let is_own = self.who.kind == PrincipalKind::Api
            && own == self.subject
            && self.directory.project(&self.who.user, own).is_some();
        is_own.then_some(ProjectRole::Editor)
    }

    /// Decides by membership. `now` is the user's current role, `token` the role in its API token.
    fn member<R: ContractRole>(
        &self,
        kind: &'static str,
        roles: &[R],
        now: Option<R>,
        token: Option<R>,
    ) -> Result<bool, Denied> {
        let unseen = || Denied::not_found(kind, self.subject);
        let now = now.ok_or_else(unseen)?;
        if self.who.kind == PrincipalKind::User {
            return Ok(roles.contains(&now));
        }
        if token.is_none() && !self.who.rights.permissions.knows(self.subject) {
            return Err(unseen());
        }
        // Both must hold: the token lists the role or method, and the user's current role is still
        // at least as strong. Without the second check a token would outlive a lost membership.
        let granted = token.is_some_and(|role| roles.contains(&role)) || self.listed();
        Ok(granted && reaches(now, roles))
    }

    /// Decides by machine role. It comes from a token made for one machine, so there is no membership
    /// to look up.
    fn machine(&self, roles: &[MachineRole]) -> Result<bool, Denied> {
        if self.who.kind != PrincipalKind::Api {
            return Ok(false);
        }
        let rights = &self.who.rights.machine_roles;
        let role = rights.get(self.subject).or_else(|| rights.get(ALL));
        if role.is_some_and(|role| roles.contains(role)) || self.listed() {
            return Ok(true);
        }
        if role.is_none() && !rights.is_empty() {
            return Err(Denied::not_found("machine", self.subject));
        }
        Ok(false)
    }

    fn infra(&self, roles: &[InfraRole]) -> bool {
        let role = self.who.rights.infra_role;
        self.who.kind == PrincipalKind::Api
            && (role.is_some_and(|role| roles.contains(&role)) || self.listed())
    }
}
