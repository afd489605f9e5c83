//! Counters and optics of switch ports.

use std::collections::BTreeMap;

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// The last numbers of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchNumbers {
    /// Time of the report.
    pub at: Timestamp,
    /// The ports by name.
    pub ports: BTreeMap<String, PortNumbers>,
}

/// The last numbers of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortNumbers {
    /// Counters: received and sent bytes, packets, errors and drops. `None` means that the platform
    /// counts nothing.
    pub counters: Option<[u64; 8]>,
    /// The transceiver. `None` means that the platform reports none.
    pub optics: Option<OpticsReading>,
}

/// A transceiver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpticsReading {
    /// Vendor, part and serial number.
    pub module: [String; 3],
    /// Received and sent power, 0.01 dBm, and temperature, degrees Celsius.
    pub readings: [i32; 3],
}
