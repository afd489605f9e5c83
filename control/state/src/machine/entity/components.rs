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
    /// Size, bytes.
    pub size: u64,
    /// Serial number; empty if the disk reports none.
    pub serial: String,
    /// Model name.
    pub model: String,
    /// `true` if it has spinning platters.
    pub rotational: bool,
    /// `true` if it is removable: it is never wiped nor installed to.
    pub removable: bool,
}

impl BlockDevice {
    /// `true` if it is a fixed disk with a medium: it may hold data, and a system may be installed
    /// to it.
    pub fn is_fixed(&self) -> bool {
        !self.removable && self.size > 0
    }
}
