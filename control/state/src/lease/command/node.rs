//! The command that changes a node together with its owner, lessee and class.

use proto_types::MachineId;
use serde::{Deserialize, Serialize};

use crate::lease::command::{EndLease, GrantLease, SetMachineOwner};
use crate::machine::command::SetMachineCapability;
use crate::node::command::SetNode;

/// See [`Op::UpdateNode`](crate::Op::UpdateNode). Its parts are about this machine, and are carried out
/// in the order of the fields, all of them or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateNode {
    /// The machine.
    pub machine: MachineId,
    /// The end of its lease. `None` means that it goes on.
    #[serde(default)]
    pub end: Option<EndLease>,
    /// Its owner. `None` means that it stays.
    #[serde(default)]
    pub owner: Option<SetMachineOwner>,
    /// A new lease. `None` means none.
    #[serde(default)]
    pub grant: Option<GrantLease>,
    /// Class and traits. `None` means that they stay.
    #[serde(default)]
    pub capability: Option<SetMachineCapability>,
    /// Its fields, locked by the generation of before the command. `None` means that they stay, but for
    /// those that end with a lease or an owner.
    #[serde(default)]
    pub node: Option<SetNode>,
}

impl UpdateNode {
    /// A change of nothing.
    #[must_use]
    pub const fn of(machine: MachineId) -> Self {
        Self {
            machine,
            end: None,
            owner: None,
            grant: None,
            capability: None,
            node: None,
        }
    }

    /// The machines of its parts.
    pub(crate) fn machines(&self) -> impl Iterator<Item = MachineId> {
        let parts = [
            self.end.as_ref().map(|part| part.machine),
            self.owner.as_ref().map(|part| part.machine),
            self.grant.as_ref().map(|part| part.machine),
            self.capability.as_ref().map(|part| part.machine),
            self.node.as_ref().map(|part| part.machine),
        ];
        parts.into_iter().flatten()
    }
}
