//! The command that registers a machine.

use proto_types::{MachineId, PartitionId};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{Bios, Fru, Hardware};

/// See [`Op::RegisterMachine`](crate::Op::RegisterMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisterMachine {
    /// The machine.
    pub id: MachineId,
    /// Partition in which an unknown machine is created first, as by
    /// [`Op::MachineSeen`](crate::Op::MachineSeen). `None` means that the machine must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_in: Option<PartitionId>,
    /// Version of hammer.
    #[serde(default)]
    pub hammer_version: String,
    /// Id of the boot, new for each.
    pub boot_id: String,
    /// Hardware.
    pub hardware: Hardware,
    /// Identity of the firmware.
    #[serde(default)]
    pub bios: Bios,
    /// Field-replaceable-unit data as seen in band.
    #[serde(default)]
    pub fru: Fru,
    /// Address of the BMC as seen in band; empty means that hammer found no BMC.
    #[serde(default)]
    pub bmc_address: String,
    /// MAC address of the BMC as seen in band.
    #[serde(default)]
    pub bmc_mac: String,
    /// Firmware version of the BMC as seen in band.
    #[serde(default)]
    pub bmc_version: String,
}
