//! Addresses.

use std::fmt;
use std::net::IpAddr;

use proto_types::{IpId, MachineId, NetworkId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// How long an address stays with its project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IpType {
    /// Goes with its machine.
    #[default]
    Ephemeral,
    /// Stays until it is deleted.
    Static,
}

/// Key of an address: unique in its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IpKey {
    /// Namespace of the network.
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
    /// Head.
    pub meta: Meta,
    /// The address.
    pub ip: IpAddr,
    /// Namespace of its network.
    #[serde(default)]
    pub namespace: Option<ProjectId>,
    /// Shown name.
    #[serde(default)]
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Network that it is out of.
    pub network: NetworkId,
    /// Whose it is.
    pub project: ProjectId,
    /// How long it stays.
    #[serde(default)]
    pub kind: IpType,
    /// Machine that has it.
    #[serde(default)]
    pub machine: Option<MachineId>,
}
