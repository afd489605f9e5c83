//! The command that registers a machine.

use proto_types::{MachineId, PartitionId};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{Bios, Fru, Hardware};

/// See [`Op::RegisterMachine`](crate::Op::RegisterMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisterMachine {
    /// Which.
    pub id: MachineId,
    /// Where it is when nobody has seen it before: it is made with this change, as
    /// [`Op::MachineSeen`](crate::Op::MachineSeen) would have made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_in: Option<PartitionId>,
    /// Version of hammer.
    #[serde(default)]
    pub hammer_version: String,
    /// Changes with each boot.
    pub boot_id: String,
    /// What it is made of.
    pub hardware: Hardware,
    /// Firmware's identity.
    #[serde(default)]
    pub bios: Bios,
    /// Field-replaceable-unit data as seen in band.
    #[serde(default)]
    pub fru: Fru,
    /// Address of the BMC as seen in band; empty without one.
    #[serde(default)]
    pub bmc_address: String,
    /// MAC address of the BMC as seen in band.
    #[serde(default)]
    pub bmc_mac: String,
    /// Firmware version of the BMC as seen in band.
    #[serde(default)]
    pub bmc_version: String,
}
