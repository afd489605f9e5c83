//! Platform rights of a token, narrowed to the current standing of its user.
//!
//! Admin, infra and machine roles are stored with a token and belong to no tenant or project whose
//! memberships a decision could look up. They depend on the user's role in the provider's tenant
//! instead: decisions see the part of them that this role currently covers.

use std::sync::LazyLock;

use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, TenantRole};
use proto_public::{Method, Scope, methods};

use crate::permissions::MethodSet;
use crate::{Directory, Permissions, TokenRights};

/// The admin role that a user may currently order or keep. It follows from the role in the provider's
/// tenant: an owner becomes an editor, an editor or viewer becomes a viewer.
pub fn platform_role(directory: &dyn Directory, user: &str) -> Option<AdminRole> {
    match directory.provider_role(user)? {
        TenantRole::Owner => Some(AdminRole::Editor),
        TenantRole::Editor | TenantRole::Viewer => Some(AdminRole::Viewer),
        TenantRole::Guest | TenantRole::Unspecified => None,
    }
}

/// The methods that a token whose user has no standing may still list.
static ORDINARY: LazyLock<MethodSet> = LazyLock::new(|| {
    set(|method| {
        !matches!(
            method.scope,
            Scope::Admin(_) | Scope::Infra(_) | Scope::Machine(_)
        )
    })
});
/// The methods that a token whose user has a viewer's standing may list.
static VIEWED: LazyLock<MethodSet> = LazyLock::new(|| {
    set(|method| match &method.scope {
        Scope::Admin(roles) => roles.contains(&AdminRole::Viewer),
        Scope::Infra(roles) => roles.contains(&InfraRole::Viewer),
        Scope::Machine(roles) => roles.contains(&MachineRole::Viewer),
        Scope::Public | Scope::Own | Scope::Tenant(_) | Scope::Project(_) => true,
    })
});

/// The methods that need no membership in a tenant or project.
static PLATFORM: LazyLock<MethodSet> = LazyLock::new(|| {
    set(|method| {
        matches!(
            method.scope,
            Scope::Public | Scope::Admin(_) | Scope::Infra(_) | Scope::Machine(_)
        )
    })
});

fn set(is_in: impl Fn(&Method) -> bool) -> MethodSet {
    let mut set = MethodSet::default();
    for method in methods().iter().filter(|method| is_in(method)) {
        set.insert(method.index);
    }
    set
}

impl TokenRights {
    /// `true` if they contain a platform right: an admin, infra or machine role, or a listed method of
    /// these scopes.
    pub fn are_over_platform(&self) -> bool {
        self.admin_role.is_some()
            || self.infra_role.is_some()
            || !self.machine_roles.is_empty()
            || !self.permissions.are_within(&ORDINARY)
    }

    /// The rights without those from memberships in tenants and projects. They are left of a token
    /// whose creator made it for another user and could no longer do so.
    #[must_use]
    pub fn without_membership(mut self) -> Self {
        self.project_roles.clear();
        self.tenant_roles.clear();
        self.permissions.keep(&PLATFORM);
        self
    }

    /// The rights that the given standing covers. `None` means that the user lost its standing.
    #[must_use]
    pub fn with_standing(mut self, standing: Option<AdminRole>) -> Self {
        match standing {
            Some(AdminRole::Editor) => {}
            Some(AdminRole::Viewer) => {
                self.admin_role = self.admin_role.map(|_| AdminRole::Viewer);
                self.infra_role = self.infra_role.map(|_| InfraRole::Viewer);
                for role in self.machine_roles.values_mut() {
                    *role = MachineRole::Viewer;
                }
                self.permissions.keep(&VIEWED);
            }
            Some(AdminRole::Unspecified) | None => {
                self.admin_role = None;
                self.infra_role = None;
                self.machine_roles.clear();
                self.permissions.keep(&ORDINARY);
            }
        }
        self
    }
}

impl Permissions {
    fn are_within(&self, set: &MethodSet) -> bool {
        self.sets().all(|listed| listed.is_within(set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "/metalstack.admin.v2.MachineService/List";
    const SET_STATE: &str = "/metalstack.admin.v2.MachineService/SetState";
    const WAIT: &str = "/metalstack.infra.v2.BootService/Wait";
    const GET: &str = "/metalstack.api.v2.IPService/Get";

    fn all() -> TokenRights {
        let mut permissions = Permissions::default();
        for path in [LIST, SET_STATE, WAIT, GET] {
            assert!(permissions.add("*", path), "{path}");
        }
        TokenRights {
            permissions,
            machine_roles: [("*".to_owned(), MachineRole::Editor)].into(),
            admin_role: Some(AdminRole::Editor),
            infra_role: Some(InfraRole::Editor),
            ..TokenRights::default()
        }
    }

    fn listed(rights: &TokenRights) -> Vec<&'static str> {
        let entries = rights.permissions.iter();
        let mut listed: Vec<_> = entries.flat_map(|(_, paths)| paths).collect();
        listed.sort_unstable();
        listed
    }

    #[test]
    fn a_standing_leaves_its_part_of_the_rights() {
        assert!(all().are_over_platform());
        assert_eq!(all().with_standing(Some(AdminRole::Editor)), all());
        let viewer = all().with_standing(Some(AdminRole::Viewer));
        assert_eq!(
            (viewer.admin_role, viewer.infra_role),
            (Some(AdminRole::Viewer), Some(InfraRole::Viewer))
        );
        assert_eq!(viewer.machine_roles["*"], MachineRole::Viewer);
        assert_eq!(listed(&viewer), [LIST, GET]);
        let none = all().with_standing(None);
        assert_eq!(listed(&none), [GET]);
        assert!(!none.are_over_platform() && none.machine_roles.is_empty());
        assert!(none.admin_role.is_none() && none.infra_role.is_none());
    }
}
