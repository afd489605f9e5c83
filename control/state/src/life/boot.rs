//! What a machine boots.
//!
//! After a restore no installer boots until somebody has reconciled the state: what is free in it
//! may be a tenant's by now, and a published hammer wipes disks as soon as it runs.

use std::collections::BTreeSet;

use proto_types::{MacAddr, MachineId, PartitionId};

use crate::cluster::read::restored;
use crate::entities::{Availability, HoldCause, Machine, Phase, Segment};
use crate::levels::{CONTRACT_LEVEL, feature_level};
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
    let machine = tables.get::<Machine>(&machine);
    let wanted = machine.map_or(BootTarget::Hammer, |machine| target(tables, machine));
    match wanted {
        BootTarget::Hammer if restored(tables).is_some() => BootTarget::None,
        wanted => wanted,
    }
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

/// Whether hammer may begin to run: tickets and tokens are for nothing else. While the machine is
/// being powered off for a reclaim, what boots there is the former tenant's.
pub fn hammer_may_boot(tables: &Tables, machine: &Machine) -> bool {
    let is_going_down = matches!(machine.phase, Phase::ReclaimPowerOff | Phase::ReclaimPorts);
    boot_target(tables, machine.id) == BootTarget::Hammer && !is_going_down
}

/// Whether hammer may still be there: it installed the machine and waits for the order to reboot.
/// A hammer that runs already stays: it is told to do nothing while its machine is locked.
pub fn hammer_may_run(machine: &Machine) -> bool {
    let is_leaving = matches!(machine.phase, Phase::BootOrder | Phase::Rebooting)
        && machine.segment != Segment::Tenant;
    let is_going_down = matches!(machine.phase, Phase::ReclaimPowerOff | Phase::ReclaimPorts);
    is_leaving || (by_phase(machine) == BootTarget::Hammer && !is_going_down)
}

/// Nothing is done to a locked machine, and hammer wipes and installs.
fn target(tables: &Tables, machine: &Machine) -> BootTarget {
    match by_phase(machine) {
        BootTarget::Hammer if is_left_alone(tables, machine) => BootTarget::None,
        wanted => wanted,
    }
}

/// `true` if the machine is locked: it is neither wiped, installed nor powered by its life cycle.
/// Until all control nodes know this rule, only its reboots are spared.
pub fn is_left_alone(tables: &Tables, machine: &Machine) -> bool {
    machine.condition.state == Availability::Locked && feature_level(tables) >= CONTRACT_LEVEL
}

fn by_phase(machine: &Machine) -> BootTarget {
    match machine.phase {
        Phase::BootOrder | Phase::Rebooting | Phase::Running => BootTarget::Disk,
        Phase::Held(HoldCause::Bmc) if machine.segment == Segment::Isolated => BootTarget::None,
        Phase::Held(HoldCause::Ports) => BootTarget::None,
        _ => BootTarget::Hammer,
    }
}
