//! What a machine is made of, as hammer and its BMC tell it.

use proto_types::MacAddr;
use serde::{Deserialize, Serialize};

use crate::switch::entity::Neighbour;

/// A CPU socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Maker.
    pub vendor: String,
    /// Model name.
    pub model: String,
    /// Physical cores.
    pub cores: u32,
    /// Hardware threads.
    pub threads: u32,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Maker.
    pub vendor: String,
    /// Model name.
    pub model: String,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockDevice {
    /// Device path, `/dev/vda`.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Serial number; empty when the disk does not tell.
    pub serial: String,
    /// Model name.
    pub model: String,
    /// Whether it spins.
    pub rotational: bool,
    /// Whether it is removable: never wiped, never installed to.
    pub removable: bool,
}

impl BlockDevice {
    /// Whether it is a disk that data may lie on and that a system may be installed to.
    pub fn is_fixed(&self) -> bool {
        !self.removable && self.size > 0
    }
}

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

/// How the firmware boots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Firmware {
    /// Not told yet.
    #[default]
    Unknown,
    /// Legacy BIOS.
    Bios,
    /// UEFI.
    Uefi,
}

/// What the machine is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// Bytes.
    pub memory: u64,
    /// CPU sockets.
    pub cpus: Vec<Cpu>,
    /// GPUs.
    pub gpus: Vec<Gpu>,
    /// Disks.
    pub disks: Vec<BlockDevice>,
    /// Network interfaces.
    pub nics: Vec<Nic>,
    /// How it boots.
    pub firmware: Firmware,
}

/// Firmware's own identity.
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

/// Field-replaceable-unit data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fru {
    /// Chassis part number.
    pub chassis_part_number: String,
    /// Chassis serial number.
    pub chassis_part_serial: String,
    /// Board maker.
    pub board_mfg: String,
    /// Board serial number.
    pub board_mfg_serial: String,
    /// Board part number.
    pub board_part_number: String,
    /// Product maker.
    pub product_manufacturer: String,
    /// Product part number, or its name.
    pub product_part_number: String,
    /// Product serial number.
    pub product_serial: String,
}

impl Fru {
    /// Takes what the other knows and this does not.
    pub(crate) fn fill_from(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.chassis_part_number, &other.chassis_part_number),
            (&mut self.chassis_part_serial, &other.chassis_part_serial),
            (&mut self.board_mfg, &other.board_mfg),
            (&mut self.board_mfg_serial, &other.board_mfg_serial),
            (&mut self.board_part_number, &other.board_part_number),
            (&mut self.product_manufacturer, &other.product_manufacturer),
            (&mut self.product_part_number, &other.product_part_number),
            (&mut self.product_serial, &other.product_serial),
        ] {
            if mine.is_empty() {
                mine.clone_from(theirs);
            }
        }
    }
}
