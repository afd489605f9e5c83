//! Addresses.

use std::fmt;
use std::net::IpAddr;

use proto_types::{ClaimId, IpId, MachineId, NetworkId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::meta::{Meta, label};

/// Life of an address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IpType {
    /// Deleted together with the use by its machine.
    #[default]
    Ephemeral,
    /// Kept until the project deletes it.
    Static,
}

/// Key of an address: unique in its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IpKey {
    /// Namespace of the network. `None` means the common one.
    pub namespace: Option<ProjectId>,
    /// The address.
    pub ip: IpAddr,
}

impl fmt::Display for IpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            Some(namespace) => write!(f, "{namespace}-{}", self.ip),
            None => self.ip.fmt(f),
        }
    }
}

/// An address that a project has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ip {
    /// Id of this use of the address.
    pub id: IpId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// The address.
    pub ip: IpAddr,
    /// Namespace of its network. `None` means the common one.
    #[serde(default)]
    pub namespace: Option<ProjectId>,
    /// Display name. Empty means none.
    #[serde(default)]
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// The network that it was taken from.
    pub network: NetworkId,
    /// The project that has it.
    pub project: ProjectId,
    /// Life of the address: ephemeral or static.
    #[serde(default)]
    pub kind: IpType,
    /// The machine that uses it. `None` means none.
    #[serde(default)]
    pub machine: Option<MachineId>,
    /// The claim that its machine serves. The project is shown the claim, and not the machine.
    /// `None` means that it serves none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
}

impl Ip {
    /// The machine that uses it, unless that one serves a claim.
    pub fn shown_machine(&self) -> Option<MachineId> {
        self.machine.filter(|_| self.claim.is_none())
    }

    /// The user of the address as text: a claim, or a machine.
    pub(crate) fn user_text(&self) -> Option<String> {
        match self.claim {
            Some(claim) => Some(format!("claim \"{claim}\"")),
            None => self.machine.map(|machine| format!("machine \"{machine}\"")),
        }
    }

    /// Sets the label of the system to the machine that is shown.
    pub(crate) fn label_machine(&mut self) {
        let shown = self.shown_machine();
        let labels = &mut self.meta.labels;
        match shown {
            Some(machine) => labels.insert(label::MACHINE_ID.into(), machine.to_string()),
            None => labels.remove(label::MACHINE_ID),
        };
    }
}
