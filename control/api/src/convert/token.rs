//! Tokens, and their rights for decisions.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use control_authz::{Directory, Permissions, Principal, Rights, TokenKind, platform_role};
use control_state::{self as state};
use proto_public::Spelling;
use proto_public::api::v2;
use proto_public::api::v2::permissions_by_visibility::Visibility;
use tonic::Status;

use super::enums::token_type;
use super::tenancy::{from_project_role, from_tenant_role, project_role, tenant_role};
use super::{has_labels, is, is_choice, meta, time};
use crate::refusal::{invalid, refused};

/// The subject of methods that have none, as published servers keep it.
const NO_SUBJECT: &str = "";
/// The subject that stands for all that the user can reach.
const ALL: &str = "*";

/// A token for the wire; its secret is not in the state.
pub(crate) fn token(token: &state::Token) -> v2::Token {
    v2::Token {
        uuid: token.id.to_string(),
        user: token.user.clone(),
        meta: meta(&token.meta),
        description: token.description.clone(),
        permissions: token.permissions.iter().map(permission).collect(),
        expires: time(token.expires),
        issued_at: time(token.issued_at),
        token_type: token_type(token.token_type),
        project_roles: numbers(&token.project_roles, |role| project_role(role).into()),
        tenant_roles: numbers(&token.tenant_roles, |role| tenant_role(role).into()),
        admin_role: token.admin_role.map(editor_viewer),
        infra_role: token.infra_role.map(editor_viewer),
        machine_roles: numbers(&token.machine_roles, editor_viewer),
    }
}

/// Whether a query asks for this token.
pub(crate) fn token_matches(token: &state::Token, query: Option<&v2::TokenQuery>) -> bool {
    let Some(query) = query else { return true };
    is(query.uuid.as_ref(), &token.id.to_string())
        && is(query.user.as_ref(), &token.user)
        && is(query.description.as_ref(), &token.description)
        && has_labels(&token.meta.labels, query.labels.as_ref())
        && is_choice(query.token_type, token_type(token.token_type))
}

fn permission(permission: &state::MethodPermission) -> v2::MethodPermission {
    v2::MethodPermission {
        subject: permission.subject.clone(),
        methods: permission.methods.clone(),
    }
}

fn numbers<R: Copy>(
    roles: &BTreeMap<String, R>,
    number: impl Fn(R) -> i32,
) -> HashMap<String, i32> {
    roles
        .iter()
        .map(|(subject, role)| (subject.clone(), number(*role)))
        .collect()
}

const fn editor_viewer(role: state::EditorViewer) -> i32 {
    // Admin, infra and machine roles have the same two numbers.
    match role {
        state::EditorViewer::Editor => v2::AdminRole::Editor as i32,
        state::EditorViewer::Viewer => v2::AdminRole::Viewer as i32,
    }
}

fn from_editor_viewer(number: i32) -> Option<state::EditorViewer> {
    match v2::AdminRole::try_from(number).ok()? {
        v2::AdminRole::Unspecified => None,
        v2::AdminRole::Editor => Some(state::EditorViewer::Editor),
        v2::AdminRole::Viewer => Some(state::EditorViewer::Viewer),
    }
}

/// Roles as a request carries them.
#[derive(Debug, Clone, Default)]
pub(crate) struct WantedRights {
    pub(crate) permissions: Vec<state::MethodPermission>,
    pub(crate) project_roles: BTreeMap<String, state::ProjectRole>,
    pub(crate) tenant_roles: BTreeMap<String, state::TenantRole>,
    pub(crate) machine_roles: BTreeMap<String, state::EditorViewer>,
    pub(crate) admin_role: Option<state::EditorViewer>,
    pub(crate) infra_role: Option<state::EditorViewer>,
}

impl WantedRights {
    /// Reads the fields of a create or update request. An admin or infra role that is
    /// unspecified is no role.
    ///
    /// # Errors
    /// `invalid_argument` for an unspecified role of a subject, `permission_denied` for a method
    /// that is unknown or of another visibility.
    pub(crate) fn read(
        permissions: &[v2::PermissionsByVisibility],
        project_roles: &HashMap<String, i32>,
        tenant_roles: &HashMap<String, i32>,
        machine_roles: &HashMap<String, i32>,
        admin_role: Option<i32>,
        infra_role: Option<i32>,
    ) -> Result<Self, Status> {
        let subjects =
            permissions.len() + project_roles.len() + tenant_roles.len() + machine_roles.len();
        if subjects > state::TOKEN_SUBJECTS_MAX {
            let rule = format!(
                "a token names at most {} subjects in roles and permissions; \"*\" stands for all",
                state::TOKEN_SUBJECTS_MAX
            );
            return Err(invalid("permissions", rule));
        }
        Ok(Self {
            permissions: flatten(permissions)?,
            project_roles: roles("project_roles", project_roles, from_project_role)?,
            tenant_roles: roles("tenant_roles", tenant_roles, from_tenant_role)?,
            machine_roles: roles("machine_roles", machine_roles, from_editor_viewer)?,
            admin_role: role("admin_role", admin_role)?,
            infra_role: role("infra_role", infra_role)?,
        })
    }

    /// The rights of a token that is there, without methods that an older program misfiled, see
    /// [`state::Token::by_visibility`].
    pub(crate) fn of(token: &state::Token) -> Self {
        Self {
            permissions: counted(token),
            project_roles: token.project_roles.clone(),
            tenant_roles: token.tenant_roles.clone(),
            machine_roles: token.machine_roles.clone(),
            admin_role: token.admin_role,
            infra_role: token.infra_role,
        }
    }

    /// As decisions need them.
    pub(crate) fn rights(&self) -> Rights {
        let mut permissions = Permissions::default();
        for entry in &self.permissions {
            for method in &entry.methods {
                // A method that this version does not know gives no right.
                let _known = permissions.add(&one_id(&entry.subject), method);
            }
        }
        let wire = |role| match role {
            state::EditorViewer::Editor => v2::AdminRole::Editor,
            state::EditorViewer::Viewer => v2::AdminRole::Viewer,
        };
        let infra = |role| match role {
            state::EditorViewer::Editor => v2::InfraRole::Editor,
            state::EditorViewer::Viewer => v2::InfraRole::Viewer,
        };
        let machine = |role: &state::EditorViewer| match role {
            state::EditorViewer::Editor => v2::MachineRole::Editor,
            state::EditorViewer::Viewer => v2::MachineRole::Viewer,
        };
        Rights {
            permissions,
            project_roles: mapped(&self.project_roles, |role| project_role(*role)),
            tenant_roles: mapped(&self.tenant_roles, |role| tenant_role(*role)),
            machine_roles: mapped(&self.machine_roles, machine),
            admin_role: self.admin_role.map(wire),
            infra_role: self.infra_role.map(infra),
            component: None,
        }
    }
}

/// The permissions of a token that count.
fn counted(token: &state::Token) -> Vec<state::MethodPermission> {
    let mut permissions = token.permissions.clone();
    if token.by_visibility {
        return permissions;
    }
    let has_subject = |path: &String| {
        let method = proto_public::method(path);
        method.is_some_and(|method| method.scope.subject_field().is_some())
    };
    for entry in permissions.iter_mut().filter(|it| it.subject == ALL) {
        entry.methods.retain(|path| !has_subject(path));
    }
    permissions
}

/// Roles by subject in its one spelling. Of two entries for one id, the weaker counts; the contract
/// numbers roles from the strongest.
fn mapped<A, B: Ord + Copy>(
    roles: &BTreeMap<String, A>,
    map: impl Fn(&A) -> B,
) -> BTreeMap<String, B> {
    let mut out = BTreeMap::new();
    for (subject, role) in roles {
        let role = map(role);
        let kept = out.entry(one_id(subject).into_owned()).or_insert(role);
        *kept = role.max(*kept);
    }
    out
}

/// An id as requests carry it past the gate: tokens may be older than that.
fn one_id(subject: &str) -> Cow<'_, str> {
    match Spelling::Uuid.rewrite(subject) {
        Some(rewritten) => Cow::Owned(rewritten),
        None => Cow::Borrowed(subject),
    }
}

fn roles<R>(
    field: &str,
    roles: &HashMap<String, i32>,
    read: impl Fn(i32) -> Option<R>,
) -> Result<BTreeMap<String, R>, Status> {
    roles
        .iter()
        .map(|(subject, number)| {
            let role = read(*number).ok_or_else(|| invalid(field, "names no role"))?;
            Ok((subject.clone(), role))
        })
        .collect()
}

fn role(field: &str, number: Option<i32>) -> Result<Option<state::EditorViewer>, Status> {
    number
        .filter(|number| *number != v2::AdminRole::Unspecified as i32)
        .map(|number| from_editor_viewer(number).ok_or_else(|| invalid(field, "names no role")))
        .transpose()
}

/// Permissions by visibility, as the list that the state keeps: one entry for each visibility and
/// subject, in the order of the request, with its methods sorted.
fn flatten(
    permissions: &[v2::PermissionsByVisibility],
) -> Result<Vec<state::MethodPermission>, Status> {
    let mut out: Vec<(Listed<'_>, BTreeSet<&str>)> = Vec::new();
    let mut count = 0;
    for entry in permissions.iter().filter_map(|it| it.visibility.as_ref()) {
        let (listed, methods) = read(entry);
        for path in methods {
            check_visibility(&listed, path)?;
        }
        let at = out.iter().position(|(known, _)| *known == listed);
        let at = at.unwrap_or_else(|| {
            out.push((listed, BTreeSet::new()));
            out.len() - 1
        });
        let Some((_, known)) = out.get_mut(at) else {
            continue;
        };
        let before = known.len();
        known.extend(methods.iter().map(String::as_str));
        count += known.len() - before;
        if count > state::TOKEN_METHODS_MAX {
            let rule = format!(
                "a token lists at most {} methods over all subjects",
                state::TOKEN_METHODS_MAX
            );
            return Err(invalid("permissions", rule));
        }
    }
    let made = |(listed, methods): (Listed<'_>, BTreeSet<&str>)| state::MethodPermission {
        subject: listed.subject.to_owned(),
        methods: methods.into_iter().map(str::to_owned).collect(),
    };
    Ok(out.into_iter().map(made).collect())
}

/// Of which visibility the methods of an entry are, and for which subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listed<'a> {
    visibility: &'static str,
    subject: &'a str,
}

fn read(entry: &Visibility) -> (Listed<'_>, &[String]) {
    let (visibility, subject, methods) = match entry {
        Visibility::Public(p) => ("public", NO_SUBJECT, &p.methods),
        Visibility::Self_(p) => ("self", NO_SUBJECT, &p.methods),
        Visibility::Admin(p) => ("admin", NO_SUBJECT, &p.methods),
        Visibility::Infra(p) => ("infra", NO_SUBJECT, &p.methods),
        Visibility::Project(p) => ("project", p.project.as_str(), &p.methods),
        Visibility::Tenant(p) => ("tenant", p.login.as_str(), &p.methods),
        Visibility::Machine(p) => ("machine", p.uuid.as_str(), &p.methods),
    };
    let listed = Listed {
        visibility,
        subject,
    };
    (listed, methods)
}

/// Without this a project's method under "self" would be allowed for every project.
fn check_visibility(listed: &Listed<'_>, path: &str) -> Result<(), Status> {
    let Some(method) = proto_public::method(path) else {
        let message = format!("{path:?} in permissions is no method; see: metalmesh methods");
        return Err(refused(state::ErrorCode::PermissionDenied, message));
    };
    let actual = method.scope.visibility();
    if actual == listed.visibility {
        return Ok(());
    }
    let message = format!(
        "method {path:?} is of visibility \"{actual}\", not \"{}\": list it there",
        listed.visibility
    );
    Err(refused(state::ErrorCode::PermissionDenied, message))
}

/// The admin role as which rights over the platform count now that rest on `warrant`, in a token
/// of `user`; `None` when those on whose standing they rest have lost it.
pub(crate) fn standing(
    warrant: Option<&state::Warrant>,
    user: &str,
    directory: &dyn Directory,
) -> Option<v2::AdminRole> {
    match warrant {
        Some(state::Warrant::Operator) => Some(v2::AdminRole::Editor),
        None => platform_role(directory, user),
        Some(state::Warrant::Members(logins)) => {
            let mut roles = logins.iter().map(|login| platform_role(directory, login));
            let first = roles.next()??;
            // The contract numbers roles from the strongest.
            roles.try_fold(first, |weakest, role| Some(weakest.max(role?)))
        }
    }
}

/// `true` if the administrators who made a token for another user could make it now.
fn makers_stand(token: &state::Token, directory: &dyn Directory) -> bool {
    let Some(state::Warrant::Members(logins)) = &token.warrant else {
        return true;
    };
    let mut makers = logins.iter().filter(|login| **login != token.user);
    makers.all(|login| platform_role(directory, login) == Some(v2::AdminRole::Editor))
}

/// The caller that a token stands for, with the rights that are left of it now.
pub(crate) fn principal(token: &state::Token, directory: &dyn Directory) -> Principal {
    let kind = match token.token_type {
        state::TokenType::Api => TokenKind::Api,
        state::TokenType::User => TokenKind::User,
    };
    let mut rights = WantedRights::of(token).rights();
    if !makers_stand(token, directory) {
        rights = rights.without_membership();
    }
    if rights.are_over_platform() {
        rights = rights.with_standing(standing(token.warrant.as_ref(), &token.user, directory));
    }
    Principal {
        user: token.user.as_str().into(),
        token: token.id.to_string().into(),
        kind,
        rights: Rights {
            component: (token.component.as_ref()).map(|component| component.project.to_string()),
            ..rights
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_an_older_program_reaches_no_subject_by_a_star() {
        const OWN: &str = "/metalstack.api.v2.UserService/Get";
        const PING: &str = "/metalstack.infra.v2.ComponentService/Ping";
        const IPS: &str = "/metalstack.api.v2.IPService/List";
        const TENANT: &str = "/metalstack.api.v2.TenantService/Get";
        let project = "00000000-0000-4000-8000-000000000001";
        let mut token: state::Token = serde_json::from_value(serde_json::json!({
            "id": project, "user": "ann", "meta": {}, "token_type": "api",
            "issued_at": 0, "expires": 1000,
            "permissions": [
                {"subject": "*", "methods": [OWN, PING, IPS, TENANT]},
                {"subject": project, "methods": [IPS]},
            ],
        }))
        .unwrap();
        let index = |path| proto_public::method(path).unwrap().index;
        let allowed = |token: &state::Token, subject: &str| {
            let rights = WantedRights::of(token).rights();
            [OWN, PING, IPS, TENANT].map(|path| rights.permissions.allow(subject, index(path)))
        };
        assert_eq!(allowed(&token, ""), [true, true, false, false]);
        assert_eq!(allowed(&token, "another"), [true, true, false, false]);
        assert_eq!(allowed(&token, project), [true, true, true, false]);
        token.by_visibility = true;
        assert_eq!(allowed(&token, "another"), [true; 4]);
    }
}
