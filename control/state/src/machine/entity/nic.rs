//! Network interfaces of a machine.

use proto_types::MacAddr;
use serde::{Deserialize, Serialize};

use crate::switch::entity::Neighbour;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Kernel name.
    pub name: String,
    /// Address.
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
    /// Mbit/s; 0 when unknown.
    #[serde(default)]
    pub speed: u64,
    /// Whom it hears.
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    /// Whether the machine booted over it.
    #[serde(default)]
    pub boot: bool,
}
