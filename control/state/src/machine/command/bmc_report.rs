//! The command that takes the readings of a BMC agent.

use proto_types::{MachineId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{Draw, Fru};

/// An agent's reading of one BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcReading {
    /// SMBIOS UUID; readings without one are ignored.
    pub machine: Option<MachineId>,
    /// `host:port`.
    pub address: String,
    /// MAC address; empty if unknown.
    pub mac: String,
    /// `redfish` or `ipmi`.
    pub interface: String,
    /// Firmware version of the BMC.
    pub bmc_version: String,
    /// Version of the machine's firmware.
    pub bios_version: String,
    /// Maker of the machine's firmware.
    pub bios_vendor: String,
    /// `on`, `off` or `unknown`.
    pub power_state: String,
    /// `on`, `off`, `blinking`; empty if unknown.
    pub led_state: String,
    /// Field-replaceable-unit data.
    pub fru: Fru,
    /// User that the agent logs in as; empty if it does not report it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Power that the machine draws; `None` if the agent does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// The reason why the BMC could not be read; `None` means that it was.
    pub error: Option<String>,
    /// Time of the reading.
    pub observed_at: Timestamp,
    /// Time at which control heard it, if the time of the reading is by the agent's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
}

/// See [`Op::ReportBmc`](crate::Op::ReportBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportBmc {
    /// Partition of the agent.
    pub partition: PartitionId,
    /// Readings, one per BMC.
    pub readings: Vec<BmcReading>,
}
