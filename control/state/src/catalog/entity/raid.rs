//! Software RAIDs of a filesystem layout.

use serde::{Deserialize, Serialize};

/// A software RAID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raid {
    /// Device path of the array, `/dev/md1`.
    pub array_name: String,
    /// Device paths of the members, spares included.
    pub devices: Vec<String>,
    /// RAID level, 0 or 1.
    pub level: u32,
    /// Further options for `mdadm --create`.
    #[serde(default)]
    pub create_options: Vec<String>,
    /// Number of members that are spares. 0 for RAID 0.
    #[serde(default)]
    pub spares: u32,
}
