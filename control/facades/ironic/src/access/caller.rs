//! The caller of a request: the bearer of a token in one scope.

use std::net::SocketAddr;

use control_authz::{Principal, PrincipalKind, granted_role};
use control_gate::{Bearer, ServiceContext, StateDirectory};
use control_oslo::{CallerAttribute, Credentials};
use control_state::Project;
use http::StatusCode;
use proto_types::ProjectId;

use super::{FacadeCredential, FacadeScope, KeystoneRole};
use crate::error::IronicError;

/// Id of the one domain that Keystone's clients name.
const DOMAIN: &str = "default";

/// An authenticated caller.
#[derive(Debug, Clone)]
pub(crate) struct FacadeCaller {
    /// The token's bearer.
    pub(crate) bearer: Bearer,
    /// The scope of the call.
    pub(crate) scope: FacadeScope,
    /// Its role there.
    pub(crate) role: KeystoneRole,
    /// Name of the project; empty for the site.
    pub(crate) project_name: String,
    /// The caller as rules of the policy see it.
    pub(crate) credentials: Credentials,
    /// `true` for a service of the project whose services have rights of the site.
    is_elevated: bool,
}

/// The scope that the state gives to a token, with what the caller is there.
struct ScopedRole {
    scope: FacadeScope,
    role: KeystoneRole,
    project_name: String,
}

impl ScopedRole {
    /// `true` for the scope of this project.
    fn is_of(&self, project: Option<ProjectId>) -> bool {
        project.is_some_and(|project| self.scope == FacadeScope::Project(project))
    }

    /// The scope and the role as rules of the policy see them. Rules know the project whose services have
    /// rights of the site by its name, which projects of other tenants may have too: only that project
    /// itself finds its name there.
    fn credentials(&self, role: KeystoneRole, service_project: Option<ProjectId>) -> Credentials {
        let roles = role.names().iter().copied();
        let FacadeScope::Project(project) = self.scope else {
            return Credentials::system(roles);
        };
        let service_name = match self.is_of(service_project) {
            true => self.project_name.as_str(),
            false => "",
        };
        Credentials::project(&project.to_string(), roles)
            .with(CallerAttribute::ProjectName, &self.project_name)
            .with(CallerAttribute::ProjectDomainId, DOMAIN)
            .with(CallerAttribute::ServiceProjectName, service_name)
    }
}

impl FacadeCaller {
    /// The caller of a credential. `service_project` is the one whose services have rights of the site.
    ///
    /// # Errors
    /// 401 for a token that is not valid, 403 for a scope in which it has no role, and for a token
    /// whose scope does not follow from it.
    pub(crate) async fn authenticate(
        core: &ServiceContext,
        credential: &FacadeCredential,
        peer: Option<SocketAddr>,
        service_project: Option<ProjectId>,
    ) -> Result<Self, IronicError> {
        let wanted = credential.scope;
        let look = |directory: &StateDirectory<'_>, who: &Principal| scoped(directory, who, wanted);
        let (bearer, found) = core.bearer(&credential.token, peer, look).await?;
        let found = found?;
        let role = found.role.narrowed(&bearer.labels).ok_or_else(|| {
            let text = "the token's label metalmesh.dev/openstack-role names no role that it has";
            IronicError::new(StatusCode::FORBIDDEN, text)
        })?;
        let is_elevated = role == KeystoneRole::Service && found.is_of(service_project);
        let credentials = found
            .credentials(role, service_project)
            .with(CallerAttribute::UserId, &bearer.principal.user)
            .with(CallerAttribute::UserDomainId, DOMAIN);
        Ok(Self {
            bearer,
            scope: found.scope,
            role,
            is_elevated,
            project_name: found.project_name,
            credentials,
        })
    }

    /// The project of the call. `None` means the whole site.
    pub(crate) const fn project(&self) -> Option<ProjectId> {
        match self.scope {
            FacadeScope::System => None,
            FacadeScope::Project(project) => Some(project),
        }
    }

    /// The project whose relation to a node counts when the call changes it. `None` means that the rule
    /// alone decides, as for administrators.
    pub(crate) fn writer(&self) -> Option<ProjectId> {
        self.project().filter(|_| !self.is_elevated)
    }

    /// `true` if the caller may reach a document of this owner that is not public, whatever a rule says: a
    /// project reaches its own alone. Ironic's rules permit some calls to every service, which there are
    /// the operators' alone, and here any project's.
    pub(crate) fn reaches(&self, owner: Option<ProjectId>) -> bool {
        is_reached(self.writer(), owner)
    }

    /// `true` for a call in the scope of the whole site.
    pub(crate) fn is_system(&self) -> bool {
        self.scope == FacadeScope::System
    }
}

/// As [`FacadeCaller::reaches`]; `writer` is the caller's project, `None` for the site.
fn is_reached(writer: Option<ProjectId>, owner: Option<ProjectId>) -> bool {
    writer.is_none_or(|project| owner == Some(project))
}

fn scoped(
    directory: &StateDirectory<'_>,
    who: &Principal,
    wanted: Option<FacadeScope>,
) -> Result<ScopedRole, IronicError> {
    let forbidden = |text: &str| IronicError::new(StatusCode::FORBIDDEN, text);
    let Some(scope) = wanted.or_else(|| scope_of(who)) else {
        let text = "the token has roles in several projects: name one, as in PROJECT:TOKEN, or as \
                    the user name of HTTP Basic";
        return Err(forbidden(text));
    };
    match scope {
        FacadeScope::System => {
            let admin = who
                .rights
                .admin_role
                .filter(|_| who.kind == PrincipalKind::Api);
            let role = admin.and_then(KeystoneRole::of_admin);
            let role = role.ok_or_else(|| forbidden("the token has no role of administrators"))?;
            Ok(ScopedRole {
                scope,
                role,
                project_name: String::new(),
            })
        }
        FacadeScope::Project(project) => {
            let role = granted_role(who, directory, &project.to_string());
            let role = role.and_then(KeystoneRole::of_project);
            let found = directory.tables.get::<Project>(&project);
            let (role, found) = role.zip(found).ok_or_else(|| {
                forbidden("the token has no role in this project, or there is no such project")
            })?;
            Ok(ScopedRole {
                scope,
                role,
                project_name: found.name.clone(),
            })
        }
    }
}

/// The scope that follows from a token: the site for administrators, else its one project.
fn scope_of(who: &Principal) -> Option<FacadeScope> {
    if who.kind == PrincipalKind::Api && who.rights.admin_role.is_some() {
        return Some(FacadeScope::System);
    }
    let mut projects = who.rights.project_roles.keys();
    let only = projects.next().filter(|_| projects.next().is_none())?;
    FacadeScope::parse(only)
}

#[cfg(test)]
mod tests {
    use control_oslo::{PolicyFile, PolicyTarget, ironic};

    use super::*;

    const SERVICES: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";
    const NAMESAKE: &str = "f11853c7-fa9c-4db3-a477-c9d8e0dbbf13";

    #[test]
    fn a_project_named_like_that_of_the_services_has_none_of_their_rights() {
        use KeystoneRole::{Admin, Service};
        let policy = ironic::policy(&PolicyFile::default()).unwrap();
        let services: Option<ProjectId> = Some(SERVICES.parse().unwrap());
        for (project, role, configured, expected) in [
            (SERVICES, Service, services, true),
            (SERVICES, Admin, services, false),
            (SERVICES, Service, None, false),
            (NAMESAKE, Service, services, false),
            (NAMESAKE, Admin, services, false),
        ] {
            let found = ScopedRole {
                scope: FacadeScope::Project(project.parse().unwrap()),
                role: Admin,
                project_name: "service".to_owned(),
            };
            let caller = found.credentials(role, configured);
            let decision = policy.decide("baremetal:node:list_all", &caller, &PolicyTarget::none());
            assert_eq!(decision.is_permitted(), expected, "{project} {role:?}");
        }
    }

    #[test]
    fn a_project_reaches_its_own_alone() {
        let (own, other) = (SERVICES.parse().unwrap(), NAMESAKE.parse().unwrap());
        for (writer, owner, expected) in [
            (None, None, true),
            (None, Some(other), true),
            (Some(own), Some(own), true),
            (Some(own), Some(other), false),
            // A missing owner equals no project.
            (Some(own), None, false),
        ] {
            assert_eq!(is_reached(writer, owner), expected, "{writer:?} {owner:?}");
        }
    }
}
