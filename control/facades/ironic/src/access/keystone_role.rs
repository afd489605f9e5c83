//! Roles as Keystone names them, and which of them a token of metalmesh has.

use proto_public::api::v2::{AdminRole, ProjectRole};

/// Label of a token that narrows it to a role: `reader`, `member`, `manager`, `admin` or `service`.
const ROLE_LABEL: &str = "metalmesh.dev/openstack-role";

/// A role of Keystone. Each of the first four includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeystoneRole {
    /// Reads.
    Reader,
    /// Uses.
    Member,
    /// Administers what the project owns.
    Manager,
    /// Everything in its scope.
    Admin,
    /// A service that acts in the project's name; it includes no other role.
    Service,
}

impl KeystoneRole {
    /// The role of a project's member.
    pub(crate) const fn of_project(role: ProjectRole) -> Option<Self> {
        match role {
            ProjectRole::Owner => Some(Self::Admin),
            ProjectRole::Editor => Some(Self::Manager),
            ProjectRole::Viewer => Some(Self::Reader),
            ProjectRole::Unspecified => None,
        }
    }

    /// The role of an administrator of the site.
    pub(crate) const fn of_admin(role: AdminRole) -> Option<Self> {
        match role {
            AdminRole::Editor => Some(Self::Admin),
            AdminRole::Viewer => Some(Self::Reader),
            AdminRole::Unspecified => None,
        }
    }

    /// The role under the labels of a token. A label that names no role, or more than the token has,
    /// leaves nothing.
    pub(crate) fn narrowed(self, labels: &control_state::Labels) -> Option<Self> {
        let Some(wanted) = labels.get(ROLE_LABEL) else {
            return Some(self);
        };
        let wanted = match wanted.as_str() {
            "reader" => Self::Reader,
            "member" => Self::Member,
            "manager" => Self::Manager,
            "admin" => Self::Admin,
            // Services have rights of administrators on nodes, so that only an owner passes them on.
            "service" if self == Self::Admin => return Some(Self::Service),
            _ => return None,
        };
        (wanted <= self).then_some(wanted)
    }

    /// The role and those that it includes, the strongest first.
    pub(crate) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Reader => &["reader"],
            Self::Member => &["member", "reader"],
            Self::Manager => &["manager", "member", "reader"],
            Self::Admin => &["admin", "manager", "member", "reader"],
            Self::Service => &["service"],
        }
    }
}

#[cfg(test)]
mod tests {
    use control_state::Labels;

    use super::*;

    #[test]
    fn labels_narrow_and_never_widen() {
        use KeystoneRole::{Admin, Manager, Member, Reader, Service};
        for (role, label, expected) in [
            (Admin, None, Some(Admin)),
            (Admin, Some("member"), Some(Member)),
            (Admin, Some("service"), Some(Service)),
            (Manager, Some("service"), None),
            (Manager, Some("manager"), Some(Manager)),
            (Manager, Some("admin"), None),
            (Reader, Some("member"), None),
            (Reader, Some("nonsense"), None),
        ] {
            let mut labels = Labels::new();
            if let Some(label) = label {
                labels.insert(ROLE_LABEL.to_owned(), label.to_owned());
            }
            assert_eq!(role.narrowed(&labels), expected, "{role:?} {label:?}");
        }
    }

    #[test]
    fn roles_include_the_weaker_ones() {
        assert_eq!(
            KeystoneRole::Manager.names(),
            ["manager", "member", "reader"]
        );
        assert_eq!(KeystoneRole::of_project(ProjectRole::Unspecified), None);
        assert_eq!(
            KeystoneRole::of_admin(AdminRole::Viewer),
            Some(KeystoneRole::Reader)
        );
    }
}
