//! The command that takes the readings of a BMC agent.

use proto_types::{MachineId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{Draw, Fru};

/// What the agent found at one BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcReading {
    /// SMBIOS UUID; readings without one are of no use here.
    pub machine: Option<MachineId>,
    /// host:port.
    pub address: String,
    /// Its address.
    pub mac: String,
    /// `redfish` or `ipmi`.
    pub interface: String,
    /// Firmware version of the BMC.
    pub bmc_version: String,
    /// Firmware of the machine.
    pub bios_version: String,
    /// Maker of that.
    pub bios_vendor: String,
    /// `on`, `off` or `unknown`.
    pub power_state: String,
    /// `on`, `off`, `blinking`; empty when unknown.
    pub led_state: String,
    /// Field-replaceable-unit data.
    pub fru: Fru,
    /// The user that the agent logs in as; empty when it does not tell.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What the machine draws; none when the agent does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// Why the BMC could not be read.
    pub error: Option<String>,
    /// When it was read.
    pub observed_at: Timestamp,
}

/// See [`Op::ReportBmc`](crate::Op::ReportBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportBmc {
    /// Where the agent is.
    pub partition: PartitionId,
    /// What it found.
    pub readings: Vec<BmcReading>,
}
