//! The boot targets of the machines of a partition.

use std::collections::BTreeSet;

use proto_types::{MacAddr, MachineId, PartitionId};

use crate::machine::entity::Machine;
use crate::machine::read::{BootTarget, boot_target};
use crate::tables::Tables;

/// A machine as pixie knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineBoot {
    /// Which.
    pub machine: MachineId,
    /// Addresses that it may boot from.
    pub macs: BTreeSet<MacAddr>,
    /// What it boots.
    pub target: BootTarget,
}

/// What every machine of a partition boots.
pub fn boot_desired(tables: &Tables, partition: &PartitionId) -> Vec<MachineBoot> {
    let machines = tables.index().partition_machines.get(partition);
    machines
        .into_iter()
        .flatten()
        .filter_map(|id| tables.get::<Machine>(id))
        .map(|m| MachineBoot {
            machine: m.id,
            macs: m.macs(),
            target: boot_target(tables, m.id),
        })
        .collect()
}
