//! Inventory of a machine, as hammer and its BMC report it.

use serde::{Deserialize, Serialize};

use crate::machine::entity::{BlockDevice, Cpu, Gpu, Nic};

/// Boot mode of the firmware.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Firmware {
    /// Not reported yet.
    #[default]
    Unknown,
    /// Legacy BIOS.
    Bios,
    /// UEFI.
    Uefi,
}

/// Hardware of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// Memory, bytes.
    pub memory: u64,
    /// CPU sockets.
    pub cpus: Vec<Cpu>,
    /// GPUs.
    pub gpus: Vec<Gpu>,
    /// Disks.
    pub disks: Vec<BlockDevice>,
    /// Network interfaces.
    pub nics: Vec<Nic>,
    /// Boot mode.
    pub firmware: Firmware,
}

/// Identity of the firmware.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bios {
    /// Version.
    pub version: String,
    /// Maker.
    pub vendor: String,
    /// Date as the firmware writes it.
    pub date: String,
}
