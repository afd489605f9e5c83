//! The boot targets of the machines of a partition.

use std::collections::BTreeSet;

use proto_types::{MacAddr, MachineId, PartitionId};

use crate::machine::entity::Machine;
use crate::machine::read::{BootTarget, boot_target};
use crate::tables::Tables;

/// The boot target of a machine, for pixie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineBoot {
    /// Id of the machine.
    pub machine: MachineId,
    /// MAC addresses of its cards: requests from them are the machine's.
    pub macs: BTreeSet<MacAddr>,
    /// Boot target of the machine.
    pub target: BootTarget,
}

/// The boot targets of all machines of a partition.
pub fn boot_desired(tables: &Tables, partition: &PartitionId) -> Vec<MachineBoot> {
    let machines = tables.index().partition_machines.get(partition);
    machines
        .into_iter()
        .flatten()
        .filter_map(|id| tables.get::<Machine>(id))
        .map(|machine| MachineBoot {
            machine: machine.id,
            macs: machine.macs(),
            target: boot_target(tables, machine.id),
        })
        .collect()
}
