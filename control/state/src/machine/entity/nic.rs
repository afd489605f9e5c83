//! Network interfaces of a machine.

use proto_types::MacAddr;
use serde::{Deserialize, Serialize};

use crate::switch::entity::Neighbour;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Kernel name.
    pub name: String,
    /// MAC address.
    pub mac: MacAddr,
    /// PCI address or bus name.
    #[serde(default)]
    pub identifier: String,
    /// Maker.
    #[serde(default)]
    pub vendor: String,
    /// Model name.
    #[serde(default)]
    pub model: String,
    /// Speed, Mbit/s; 0 means unknown.
    #[serde(default)]
    pub speed: u64,
    /// LLDP neighbours that it hears.
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    /// `true` if the machine booted over it.
    #[serde(default)]
    pub boot: bool,
}
