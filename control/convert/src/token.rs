//! Tokens, and their rights for decisions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use control_gate::principal::WantedRights;
use control_gate::refusal::{invalid, refused};
use control_gate::roles::{project_role, tenant_role};
use control_state::{self as state};
use proto_public::api::v2;
use proto_public::api::v2::permissions_by_visibility::Visibility;
use tonic::Status;

use super::enums::token_type;
use super::tenancy::{from_project_role, from_tenant_role};
use super::{has_labels, is, is_choice, meta, time};

/// The subject of methods without one, as published servers store it.
const NO_SUBJECT: &str = "";

/// Default lifetime of a token, milliseconds: eight hours.
const LIFE_DEFAULT_MS: u64 = 8 * 3600 * 1000;
/// Longest lifetime of a token, milliseconds: 365 days.
const LIFE_MAX_MS: u64 = 365 * 24 * 3600 * 1000;

/// A token for the wire, without its secret, which is not in the state.
pub fn token(token: &state::Token) -> v2::Token {
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

/// `true` if the query matches this token.
pub fn token_matches(token: &state::Token, query: Option<&v2::TokenQuery>) -> bool {
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

/// Reads the fields of a create or update request. An unspecified admin or infra role means none.
///
/// # Errors
/// `invalid_argument` for an unspecified role of a subject, `permission_denied` for a method
/// that is unknown or of another visibility.
pub fn read_rights(
    permissions: &[v2::PermissionsByVisibility],
    project_roles: &HashMap<String, i32>,
    tenant_roles: &HashMap<String, i32>,
    machine_roles: &HashMap<String, i32>,
    admin_role: Option<i32>,
    infra_role: Option<i32>,
) -> Result<WantedRights, Status> {
    let subjects =
        permissions.len() + project_roles.len() + tenant_roles.len() + machine_roles.len();
    if subjects > state::TOKEN_SUBJECTS_MAX {
        let rule = format!(
            "a token names at most {} subjects in roles and permissions; \"*\" stands for all",
            state::TOKEN_SUBJECTS_MAX
        );
        return Err(invalid("permissions", rule));
    }
    Ok(WantedRights {
        permissions: flatten(permissions)?,
        project_roles: roles("project_roles", project_roles, from_project_role)?,
        tenant_roles: roles("tenant_roles", tenant_roles, from_tenant_role)?,
        machine_roles: roles("machine_roles", machine_roles, from_editor_viewer)?,
        admin_role: role("admin_role", admin_role)?,
        infra_role: role("infra_role", infra_role)?,
    })
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
    let mut out: Vec<(PermissionScope<'_>, BTreeSet<&str>)> = Vec::new();
    let mut count = 0;
    for entry in permissions
        .iter()
        .filter_map(|entry| entry.visibility.as_ref())
    {
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
    let made = |(listed, methods): (PermissionScope<'_>, BTreeSet<&str>)| state::MethodPermission {
        subject: listed.subject.to_owned(),
        methods: methods.into_iter().map(str::to_owned).collect(),
    };
    Ok(out.into_iter().map(made).collect())
}

/// The visibility of an entry's methods, and their subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PermissionScope<'a> {
    visibility: &'static str,
    subject: &'a str,
}

fn read(entry: &Visibility) -> (PermissionScope<'_>, &[String]) {
    let (visibility, subject, methods) = match entry {
        Visibility::Public(p) => ("public", NO_SUBJECT, &p.methods),
        Visibility::Self_(p) => ("self", NO_SUBJECT, &p.methods),
        Visibility::Admin(p) => ("admin", NO_SUBJECT, &p.methods),
        Visibility::Infra(p) => ("infra", NO_SUBJECT, &p.methods),
        Visibility::Project(p) => ("project", p.project.as_str(), &p.methods),
        Visibility::Tenant(p) => ("tenant", p.login.as_str(), &p.methods),
        Visibility::Machine(p) => ("machine", p.uuid.as_str(), &p.methods),
    };
    let listed = PermissionScope {
        visibility,
        subject,
    };
    (listed, methods)
}

/// Without this a project's method under "self" would be allowed for every project.
fn check_visibility(listed: &PermissionScope<'_>, path: &str) -> Result<(), Status> {
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

/// The life of a token, milliseconds; a request that leaves it out gets the default.
///
/// # Errors
/// `invalid_argument` for a life that is negative, nothing, or too long.
pub fn life_ms(life: Option<prost_types::Duration>) -> Result<u64, Status> {
    let Some(life) = life else {
        return Ok(LIFE_DEFAULT_MS);
    };
    let seconds = u64::try_from(life.seconds).map_err(|_| invalid("expires", "is negative"))?;
    let ms = seconds.saturating_mul(1000);
    if ms == 0 || ms > LIFE_MAX_MS {
        return Err(invalid("expires", "must be at most 365 days"));
    }
    Ok(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives() {
        let life = |seconds| life_ms(Some(prost_types::Duration { seconds, nanos: 0 }));
        assert_eq!(life_ms(None).unwrap(), LIFE_DEFAULT_MS);
        assert_eq!(life(600).unwrap(), 600_000);
        for bad in [-1, 0, 31_536_001, i64::MAX] {
            assert!(life(bad).is_err(), "{bad}");
        }
    }
}
