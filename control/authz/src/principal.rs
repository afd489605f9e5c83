//! The caller and the rights of its token.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};

use crate::Permissions;

/// How the caller authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrincipalKind {
    /// Without a token.
    #[default]
    Anonymous,
    /// With a token created by the API. It has the rights that are stored with it.
    Api,
    /// With a token from a log-in. It has the current rights of its user.
    User,
}

/// The caller of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
    /// Login of the user. Empty means anonymous.
    pub user: Arc<str>,
    /// Id of the token, for the audit trail; never the secret.
    pub token: Arc<str>,
    /// How the caller authenticated.
    pub kind: PrincipalKind,
    /// Rights of an API token. They are ignored for other kinds.
    pub rights: TokenRights,
}

impl Principal {
    /// A caller without a token.
    pub fn anonymous() -> Self {
        Self::default()
    }
}

/// Rights stored with an API token. A subject `*` means every subject that the user can reach at the
/// time of the call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenRights {
    /// Single methods, by subject.
    pub permissions: Permissions,
    /// Roles by project uuid or `*`.
    pub project_roles: BTreeMap<String, ProjectRole>,
    /// Roles by tenant login or `*`.
    pub tenant_roles: BTreeMap<String, TenantRole>,
    /// Roles by machine uuid or `*`.
    pub machine_roles: BTreeMap<String, MachineRole>,
    /// Role over the whole platform.
    pub admin_role: Option<AdminRole>,
    /// Role of an agent of the published stack.
    pub infra_role: Option<InfraRole>,
    /// The project of a project component. It counts as an editor there for the methods that the
    /// token lists. `None` means that the token belongs to a user.
    pub component: Option<String>,
}
