//! Rights of project components (controllers that work for one project), fixed by kind in code.
//! Operators do not have to find out the rights of a controller and cannot give it more.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::{Permissions, TokenRights};

/// A kind of project component, with its fixed set of methods.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum ComponentProfile {
    /// Gardener's provider extension.
    Gardener,
    /// The cloud controller manager.
    Ccm,
    /// The machine controller manager.
    MachineControllerManager,
    /// The firewall controller manager.
    FirewallControllerManager,
    /// The infrastructure provider of Cluster API.
    ClusterApi,
    /// A read-only client.
    Reader,
}

/// Read-only methods that belong to no project, for every kind.
const CATALOG: &[&str] = &[
    "FilesystemService/Get",
    "FilesystemService/List",
    "ImageService/Get",
    "ImageService/Latest",
    "ImageService/List",
    "PartitionService/Get",
    "PartitionService/List",
    "SizeService/Get",
    "SizeService/List",
];
/// Read-only methods of the component's project, for every kind.
const READ: &[&str] = &[
    "IPService/Get",
    "IPService/List",
    "MachineService/Get",
    "MachineService/List",
    "NetworkService/Get",
    "NetworkService/List",
    "NetworkService/ListBaseNetworks",
    "ProjectService/Get",
];
/// Methods that create, change and delete machines.
const MACHINES: &[&str] = &[
    "MachineService/Create",
    "MachineService/Update",
    "MachineService/Delete",
];
/// Methods that label machines: the contract has no narrower method than the update.
const LABELS: &[&str] = &["MachineService/Update"];
/// Methods that create, change and delete networks.
const NETWORKS: &[&str] = &[
    "NetworkService/Create",
    "NetworkService/Update",
    "NetworkService/Delete",
];
/// Methods that create, change and delete IP addresses.
const ADDRESSES: &[&str] = &["IPService/Create", "IPService/Update", "IPService/Delete"];

impl ComponentProfile {
    /// The name. It is stored with credentials, so it never changes.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The kind with this name. `None` means that the name is unknown.
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    fn changes(self) -> [&'static [&'static str]; 3] {
        match self {
            Self::Gardener => [NETWORKS, ADDRESSES, &[]],
            Self::Ccm => [LABELS, ADDRESSES, &[]],
            Self::MachineControllerManager | Self::FirewallControllerManager => {
                [MACHINES, &[], &[]]
            }
            Self::ClusterApi => [MACHINES, NETWORKS, ADDRESSES],
            Self::Reader => [&[], &[], &[]],
        }
    }

    /// Paths of the methods that it may call in its project.
    pub fn methods(self) -> impl Iterator<Item = String> {
        let all = self.changes().into_iter().chain([READ]).flatten();
        all.map(|name| path(name))
    }

    /// Paths of the methods that it may call and that belong to no project.
    pub fn catalog(self) -> impl Iterator<Item = String> {
        CATALOG.iter().map(|name| path(name))
    }

    /// The rights of a component of this kind that works for `project`.
    pub fn rights(self, project: &str) -> TokenRights {
        let mut permissions = Permissions::default();
        for method in self.methods() {
            permissions.add(project, &method);
        }
        for method in self.catalog() {
            permissions.add("", &method);
        }
        TokenRights {
            permissions,
            component: Some(project.to_owned()),
            ..TokenRights::default()
        }
    }
}

fn path(name: &str) -> String {
    format!("/metalstack.api.v2.{name}")
}

#[cfg(test)]
mod tests {
    use proto_public::api::v2::ProjectRole;
    use proto_public::{Scope, method};

    use super::*;

    #[test]
    fn what_is_listed_is_in_the_contract_and_for_editors_at_most() {
        for kind in ComponentProfile::VARIANTS.iter().copied() {
            assert_eq!(ComponentProfile::named(kind.as_str()), Some(kind));
            for path in kind.methods() {
                let method = method(&path).unwrap_or_else(|| panic!("{path}"));
                let Scope::Project(roles) = &method.scope else {
                    panic!("{path} is not for projects: {:?}", method.scope);
                };
                assert!(roles.contains(&ProjectRole::Editor), "{path}");
            }
            for path in kind.catalog() {
                let method = method(&path).unwrap_or_else(|| panic!("{path}"));
                assert_eq!(method.scope, Scope::Own, "{path}");
            }
        }
    }

    #[test]
    fn stored_names_do_not_change() {
        let names: Vec<&str> = ComponentProfile::VARIANTS
            .iter()
            .map(|kind| kind.as_str())
            .collect();
        let stored = [
            "gardener",
            "ccm",
            "machine-controller-manager",
            "firewall-controller-manager",
            "cluster-api",
            "reader",
        ];
        assert_eq!(names, stored);
        assert_eq!(ComponentProfile::named("Gardener"), None);
    }
}
