//! Commands about the records of nodes.

use proto_types::{MachineId, ProjectId, ResourceClass};
use serde::{Deserialize, Serialize};

use crate::node::entity::NodeContent;

/// See [`Op::EnrolNode`](crate::Op::EnrolNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnrolNode {
    /// The machine: its SMBIOS UUID, or an id until its first card is seen.
    pub machine: MachineId,
    /// The project that enrols it, which can only be its owner. The machine is the project's until an
    /// agent sees it, unless an administrator confirms that before. `None` means an administrator.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// The project that owns it. `None` means the site.
    #[serde(default)]
    pub owner: Option<ProjectId>,
    /// Its resource class. `None` means none.
    #[serde(default)]
    pub resource_class: Option<ResourceClass>,
    /// Its fields.
    pub content: NodeContent,
}

/// See [`Op::SetNode`](crate::Op::SetNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetNode {
    /// The machine.
    pub machine: MachineId,
    /// The project that must own or use it. One that only uses it changes the fields of its instance
    /// and `extra`, and with a lease also stage and maintenance. `None` means an administrator.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Generation of the record that the caller read, 0 for a machine without one. Another one refuses
    /// the change.
    pub expected: u64,
    /// The new fields, all of them.
    pub content: NodeContent,
}

/// See [`Op::WipeNode`](crate::Op::WipeNode).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WipeNode {
    /// The machine, which nobody has allocated.
    pub machine: MachineId,
}
