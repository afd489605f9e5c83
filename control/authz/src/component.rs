//! What components that work for one project may do: fixed by kind, in code, so that nobody has to
//! find out which rights a controller needs, and nobody gives it more.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::{Permissions, Rights};

/// The kinds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum ComponentKind {
    /// Gardener's extension for the provider.
    Gardener,
    /// The cloud controller manager.
    Ccm,
    /// The machine controller manager.
    MachineControllerManager,
    /// The firewall controller manager.
    FirewallControllerManager,
    /// Cluster API's provider.
    ClusterApi,
    /// Whatever only looks.
    Reader,
}

/// What belongs to no project: images and sizes to choose from.
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
const MACHINES: &[&str] = &[
    "MachineService/Create",
    "MachineService/Update",
    "MachineService/Delete",
];
const LABELS: &[&str] = &["MachineService/Update"];
const NETWORKS: &[&str] = &[
    "NetworkService/Create",
    "NetworkService/Update",
    "NetworkService/Delete",
];
const ADDRESSES: &[&str] = &["IPService/Create", "IPService/Update", "IPService/Delete"];

impl ComponentKind {
    /// Its name, which is kept with credentials and never changes.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The kind of this name.
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

    /// What it may call in its project, as paths.
    pub fn methods(self) -> impl Iterator<Item = String> {
        let all = self.changes().into_iter().chain([READ]).flatten();
        all.map(|name| path(name))
    }

    /// What it may call that belongs to no project, as paths.
    pub fn catalog(self) -> impl Iterator<Item = String> {
        CATALOG.iter().map(|name| path(name))
    }

    /// All that it may do when it works for this project.
    pub fn rights(self, project: &str) -> Rights {
        let mut permissions = Permissions::default();
        for method in self.methods() {
            permissions.add(project, &method);
        }
        for method in self.catalog() {
            permissions.add("", &method);
        }
        Rights {
            permissions,
            component: Some(project.to_owned()),
            ..Rights::default()
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
        for kind in ComponentKind::VARIANTS.iter().copied() {
            assert_eq!(ComponentKind::named(kind.as_str()), Some(kind));
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
        let names: Vec<&str> = ComponentKind::VARIANTS
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
        assert_eq!(ComponentKind::named("Gardener"), None);
    }
}
