//! What components that work for one project may do: fixed by kind, in code, so that nobody has to
//! find out which rights a controller needs, and nobody gives it more.

use crate::{Permissions, TokenRights};

/// The kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComponentProfile {
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

impl ComponentProfile {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Gardener,
        Self::Ccm,
        Self::MachineControllerManager,
        Self::FirewallControllerManager,
        Self::ClusterApi,
        Self::Reader,
    ];

    /// Its name, which is kept with credentials and never changes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gardener => "gardener",
            Self::Ccm => "ccm",
            Self::MachineControllerManager => "machine-controller-manager",
            Self::FirewallControllerManager => "firewall-controller-manager",
            Self::ClusterApi => "cluster-api",
            Self::Reader => "reader",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
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
        for kind in ComponentProfile::ALL {
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
}
