//! The capabilities of a machine by which node allocations choose it.

use std::collections::BTreeSet;

use proto_types::{ResourceClass, TraitName};
use serde::{Deserialize, Serialize};

/// Most traits of a machine; a change to more is refused.
pub const TRAITS_MAX: usize = 50;

/// Resource class and traits of a machine. Its administrator, or the project that owns it, sets them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capability {
    /// `None` means that no node allocation chooses the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_class: Option<ResourceClass>,
    /// At most [`TRAITS_MAX`].
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub traits: BTreeSet<TraitName>,
}

impl Capability {
    /// `true` if nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
