//! The boot target of a machine: hammer, its disk, or no answer.
//!
//! After a restore no installer boots until somebody has reconciled the state: what is free in it
//! may be a tenant's by now, and a published hammer wipes disks as soon as it runs.

use proto_types::MachineId;

use crate::cluster::read::restored;
use crate::machine::entity::{Availability, HoldCause, Machine, Phase, Segment};
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

/// What a machine boots now; an unknown one boots hammer, to become known.
pub fn boot_target(tables: &Tables, machine: MachineId) -> BootTarget {
    let machine = tables.get::<Machine>(&machine);
    let wanted = machine.map_or(BootTarget::Hammer, |machine| target(machine));
    match wanted {
        BootTarget::Hammer if restored(tables).is_some() => BootTarget::None,
        wanted => wanted,
    }
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
pub(crate) fn target(machine: &Machine) -> BootTarget {
    match by_phase(machine) {
        BootTarget::Hammer if is_left_alone(machine) => BootTarget::None,
        wanted => wanted,
    }
}

/// `true` if the machine is locked: it is neither wiped, installed nor powered by its life cycle.
pub fn is_left_alone(machine: &Machine) -> bool {
    machine.condition.state == Availability::Locked
}

fn by_phase(machine: &Machine) -> BootTarget {
    match machine.phase {
        Phase::BootOrder | Phase::Rebooting | Phase::Running => BootTarget::Disk,
        Phase::Held(HoldCause::Bmc) if machine.segment == Segment::Isolated => BootTarget::None,
        Phase::Held(HoldCause::Ports) => BootTarget::None,
        _ => BootTarget::Hammer,
    }
}
