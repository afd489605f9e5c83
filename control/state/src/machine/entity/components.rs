//! CPUs, GPUs and disks of a machine.

use serde::{Deserialize, Serialize};

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
