//! Software RAIDs of a filesystem layout.

use serde::{Deserialize, Serialize};

/// A software RAID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raid {
    /// `/dev/md1`.
    pub array_name: String,
    /// Devices that it is made of.
    pub devices: Vec<String>,
    /// 0 or 1.
    pub level: u32,
    /// Further options for mdadm.
    #[serde(default)]
    pub create_options: Vec<String>,
    /// How many of the devices are spares.
    #[serde(default)]
    pub spares: u32,
}
