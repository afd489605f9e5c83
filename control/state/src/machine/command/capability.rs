//! The command that sets resource class and traits of a machine.

use std::collections::BTreeSet;

use proto_types::{MachineId, ProjectId, ResourceClass, TraitName};
use serde::{Deserialize, Serialize};

/// A change of a machine's resource class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassChange {
    /// It stays.
    #[default]
    Keep,
    /// It ends.
    Clear,
    /// It becomes this one.
    Set(ResourceClass),
}

/// A change of a machine's traits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraitsChange {
    /// Replace all.
    Replace(BTreeSet<TraitName>),
    /// Add some, remove others.
    Patch {
        /// To add.
        add: BTreeSet<TraitName>,
        /// To remove; those that it does not have are ignored.
        remove: BTreeSet<TraitName>,
    },
}

/// See [`Op::SetMachineCapability`](crate::Op::SetMachineCapability).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetMachineCapability {
    /// The machine.
    pub machine: MachineId,
    /// The project that must own it. `None` means that an administrator sets it, whoever owns it.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// The resource class.
    #[serde(default)]
    pub resource_class: ClassChange,
    /// The traits. `None` means that they stay.
    #[serde(default)]
    pub traits: Option<TraitsChange>,
}
