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

impl FacadeCaller {
    /// The caller of a credential.
    ///
    /// # Errors
    /// 401 for a token that is not valid, 403 for a scope in which it has no role, and for a token
    /// whose scope does not follow from it.
    pub(crate) async fn authenticate(
        core: &ServiceContext,
        credential: &FacadeCredential,
        peer: Option<SocketAddr>,
        service_project: Option<&str>,
    ) -> Result<Self, IronicError> {
        let wanted = credential.scope;
        let look = |directory: &StateDirectory<'_>, who: &Principal| scoped(directory, who, wanted);
        let (bearer, found) = core.bearer(&credential.token, peer, look).await?;
        let found = found?;
        let role = found.role.narrowed(&bearer.labels).ok_or_else(|| {
            let text = "the token's label metalmesh.dev/openstack-role names no role that it has";
            IronicError::new(StatusCode::FORBIDDEN, text)
        })?;
        let credentials = match found.scope {
            FacadeScope::System => Credentials::system(role.names().iter().copied()),
            FacadeScope::Project(project) => {
                Credentials::project(&project.to_string(), role.names().iter().copied())
                    .with(CallerAttribute::ProjectName, &found.project_name)
                    .with(CallerAttribute::ProjectDomainId, DOMAIN)
            }
        };
        let credentials = credentials
            .with(CallerAttribute::UserId, &bearer.principal.user)
            .with(CallerAttribute::UserDomainId, DOMAIN)
            .with(
                CallerAttribute::ServiceProjectName,
                service_project.unwrap_or_default(),
            );
        let is_elevated = role == KeystoneRole::Service
            && service_project.is_some_and(|project| project == found.project_name);
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

    /// `true` for a call in the scope of the whole site.
    pub(crate) fn is_system(&self) -> bool {
        self.scope == FacadeScope::System
    }
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
