//! Selects the audit trail that the record of a call goes to.

use control_authz::{Directory, Principal};
use proto_public::{Method, Scope};

/// The caller's relation to the subject of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filing {
    /// `true` if the caller is a member of the tenant or project that the call is about.
    is_member: bool,
    /// `true` if the caller has a tenant of its own name.
    has_tenant: bool,
}

/// Tenant and project that an audit record is filed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RecordPlace<'a> {
    /// Login; empty without one.
    pub tenant: &'a str,
    pub project: Option<&'a str>,
}

impl Filing {
    /// From the current memberships.
    pub(crate) fn of(
        directory: &dyn Directory,
        who: &Principal,
        method: &Method,
        subject: Option<&str>,
    ) -> Self {
        let user = &who.user;
        let in_tenant = |tenant: &str| {
            directory.tenant_role(user, tenant).is_some() || directory.is_guest(user, tenant)
        };
        let is_member = match (&method.scope, subject) {
            (Scope::Tenant(_), Some(tenant)) => in_tenant(tenant),
            (Scope::Project(_), Some(project)) => {
                let found = directory.project(user, project);
                found.is_some_and(|found| {
                    let lent = directory.tenant_role(user, found.tenant);
                    found.role.is_some() || lent.is_some()
                })
            }
            _ => false,
        };
        Self {
            is_member,
            has_tenant: directory.tenant_role(user, user).is_some(),
        }
    }

    /// The tenant and project to file the record under. A refused call of a non-member goes to the
    /// caller's own trail, so that strangers cannot fill the trail of a tenant with refusals.
    pub(crate) fn place<'a>(
        self,
        is_permitted: bool,
        method: &Method,
        subject: Option<&'a str>,
        who: &'a Principal,
    ) -> RecordPlace<'a> {
        if !is_permitted && !self.is_member {
            let tenant = if self.has_tenant { &*who.user } else { "" };
            return RecordPlace {
                tenant,
                project: None,
            };
        }
        let of = |field| subject.filter(|_| method.scope.subject_field() == Some(field));
        RecordPlace {
            tenant: of("login").unwrap_or_default(),
            project: of("project"),
        }
    }
}
