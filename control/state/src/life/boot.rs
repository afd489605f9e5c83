//! What a machine boots.

use std::collections::BTreeSet;

use proto_types::{MacAddr, MachineId, PartitionId};

use crate::entities::{HoldCause, Machine, Phase, Segment};
use crate::tables::Tables;

/// What pixie answers to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootTarget {
    /// hammer.
    Hammer,
    /// On to the disk.
    Disk,
    /// No answer.
    None,
}

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

/// What a machine boots now; an unknown one boots hammer, to become known.
pub fn boot_target(tables: &Tables, machine: MachineId) -> BootTarget {
    tables
        .get::<Machine>(&machine)
        .map_or(BootTarget::Hammer, |machine| target(machine))
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
            target: target(m),
        })
        .collect()
}

fn target(machine: &Machine) -> BootTarget {
    match machine.phase {
        Phase::BootOrder | Phase::Rebooting | Phase::Running => BootTarget::Disk,
        Phase::Held(HoldCause::Bmc) if machine.segment == Segment::Isolated => BootTarget::None,
        _ => BootTarget::Hammer,
    }
}
