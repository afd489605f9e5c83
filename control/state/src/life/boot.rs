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

/// Whether hammer may begin to run: tickets and tokens are for nothing else. While the machine is
/// being powered off for a reclaim, what boots there is the former tenant's.
pub fn hammer_may_boot(machine: &Machine) -> bool {
    let is_going_down = matches!(machine.phase, Phase::ReclaimPowerOff | Phase::ReclaimPorts);
    target(machine) == BootTarget::Hammer && !is_going_down
}

/// Whether hammer may still be there: it installed the machine and waits for the order to reboot.
pub fn hammer_may_run(machine: &Machine) -> bool {
    let is_leaving = matches!(machine.phase, Phase::BootOrder | Phase::Rebooting)
        && machine.segment != Segment::Tenant;
    is_leaving || hammer_may_boot(machine)
}

fn target(machine: &Machine) -> BootTarget {
    match machine.phase {
        Phase::BootOrder | Phase::Rebooting | Phase::Running => BootTarget::Disk,
        Phase::Held(HoldCause::Bmc) if machine.segment == Segment::Isolated => BootTarget::None,
        Phase::Held(HoldCause::Ports) => BootTarget::None,
        _ => BootTarget::Hammer,
    }
}
