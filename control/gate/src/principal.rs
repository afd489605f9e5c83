//! Turns a token into a principal: its rights, reduced to those that its warrant still supports.

use std::borrow::Cow;
use std::collections::BTreeMap;

use control_authz::{Directory, Permissions, Principal, PrincipalKind, TokenRights, platform_role};
use control_state as state;
use proto_public::Spelling;
use proto_public::api::v2;

use crate::roles::{project_role, tenant_role};

/// Rights as a request or a stored token spells them.
#[derive(Debug, Clone, Default)]
pub struct WantedRights {
    pub permissions: Vec<state::MethodPermission>,
    pub project_roles: BTreeMap<String, state::ProjectRole>,
    pub tenant_roles: BTreeMap<String, state::TenantRole>,
    pub machine_roles: BTreeMap<String, state::EditorViewer>,
    pub admin_role: Option<state::EditorViewer>,
    pub infra_role: Option<state::EditorViewer>,
}

impl WantedRights {
    /// The rights of a stored token.
    pub fn of(token: &state::Token) -> Self {
        Self {
            permissions: token.permissions.clone(),
            project_roles: token.project_roles.clone(),
            tenant_roles: token.tenant_roles.clone(),
            machine_roles: token.machine_roles.clone(),
            admin_role: token.admin_role,
            infra_role: token.infra_role,
        }
    }

    /// The rights for authorisation.
    pub fn rights(&self) -> TokenRights {
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
        TokenRights {
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

/// Roles by canonical subject. If two spellings name one id, the weaker role counts; the contract
/// numbers roles from the strongest, so the larger number is the weaker role.
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

/// The canonical spelling of an id. Stored tokens may predate the normalisation in the gate.
fn one_id(subject: &str) -> Cow<'_, str> {
    match Spelling::Uuid.rewrite(subject) {
        Some(rewritten) => Cow::Owned(rewritten),
        None => Cow::Borrowed(subject),
    }
}

/// The admin role that limits the platform rights of a token of `user` with this warrant: the
/// weakest current role of its members. `None` means that one of them has lost it, so none of the
/// rights count.
pub fn standing(
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

/// `true` if the administrators who created a token for another user are still admin editors.
fn makers_stand(token: &state::Token, directory: &dyn Directory) -> bool {
    let Some(state::Warrant::Members(logins)) = &token.warrant else {
        return true;
    };
    let mut makers = logins.iter().filter(|login| **login != token.user);
    makers.all(|login| platform_role(directory, login) == Some(v2::AdminRole::Editor))
}

/// The principal of a token, with the rights that still count.
pub fn principal(token: &state::Token, directory: &dyn Directory) -> Principal {
    let kind = match token.token_type {
        state::TokenType::Api => PrincipalKind::Api,
        state::TokenType::User => PrincipalKind::User,
    };
    let mut rights = WantedRights::of(token).rights();
    // A dismissed administrator must not keep access through tokens made for somebody else.
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
        rights: TokenRights {
            component: (token.component.as_ref()).map(|component| component.project.to_string()),
            ..rights
        },
    }
}
