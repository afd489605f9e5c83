//! The registration of a machine by the hammer of the published stack.

use std::collections::BTreeSet;

use control_convert::required;
use control_gate::Caller;
use control_state::{ErrorCode, Hardware, Partition, RegisterMachine, StateError, Tables};
use proto_public::infra::v2 as infra;
use proto_types::{MachineId, PartitionId};
use tonic::Status;

use crate::Upstream;
use crate::convert::{from_bios, from_fru, from_hardware};

/// Number of switches that a machine of the published stack is connected to.
const SWITCHES: usize = 2;

impl Upstream {
    /// The command for a registration. `boot_id` and `seen_in` are left for the caller to fill.
    pub(crate) async fn registration(
        &self,
        caller: &Caller,
        id: MachineId,
        partition: &PartitionId,
        request: infra::BootServiceRegisterRequest,
    ) -> Result<RegisterMachine, Status> {
        let hardware = required("hardware", request.hardware)?;
        let bios = required("bios", request.bios)?;
        let read = |tables: &Tables| {
            let hardware = match from_hardware(tables, partition, hardware) {
                Ok(hardware) => hardware,
                Err(refused) => return Ok(Err(refused)),
            };
            check_switches(tables, id, partition, &hardware)?;
            Ok(Ok(hardware))
        };
        let hardware = self.gate.read(caller, read).await??;
        let bmc = request.bmc.unwrap_or_default();
        Ok(RegisterMachine {
            id,
            seen_in: None,
            hammer_version: request.metal_hammer_version,
            boot_id: String::new(),
            hardware,
            bios: from_bios(bios),
            fru: from_fru(request.fru),
            bmc_address: bmc.address,
            bmc_mac: bmc.mac,
            bmc_version: bmc.version,
        })
    }
}

/// Requires that the machine hears [`SWITCHES`] switches. A partition that sets the number of uplinks
/// is exempt: there the uplinks are counted when the machine is offered.
fn check_switches(
    tables: &Tables,
    id: MachineId,
    partition: &PartitionId,
    hardware: &Hardware,
) -> Result<(), StateError> {
    let uplinks = tables
        .get::<Partition>(partition)
        .and_then(|partition| partition.uplinks());
    let neighbours = hardware.nics.iter().flat_map(|nic| &nic.neighbours);
    let names = neighbours.map(|neighbour| neighbour.system_name.as_str());
    let heard: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    if uplinks.is_some() || heard.len() == SWITCHES {
        return Ok(());
    }
    let message = format!(
        "machine \"{id}\" hears {} switches, not {SWITCHES}: {heard:?}",
        heard.len()
    );
    Err(StateError::new(ErrorCode::NotTwoSwitches, message).object("machine", id))
}
