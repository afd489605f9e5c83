//! The boot target of a machine: hammer, its disk, or no answer.
//!
//! After a restore no installer boots until the state is reconciled: a machine that is free in the
//! backup may be a tenant's by now, and a published hammer wipes disks as soon as it runs.

use proto_types::MachineId;

use crate::cluster::read::restored;
use crate::machine::entity::{Availability, HoldCause, Machine, Phase, Segment};
use crate::tables::Tables;

/// Pixie's answer to a machine's boot request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootTarget {
    /// Boot hammer.
    Hammer,
    /// Boot from the disk.
    Disk,
    /// No answer.
    None,
}

/// The target that a machine boots now. An unknown machine boots hammer, to become known.
pub fn boot_target(tables: &Tables, machine: MachineId) -> BootTarget {
    let machine = tables.get::<Machine>(&machine);
    let wanted = machine.map_or(BootTarget::Hammer, |machine| target(machine));
    match wanted {
        // No answer, and not the disk: the machine asks again, and its disk stays as it is
        // meanwhile.
        BootTarget::Hammer if restored(tables).is_some() => BootTarget::None,
        wanted => wanted,
    }
}

/// `true` if hammer may begin to run, for which tickets and tokens are issued. While a reclaim
/// powers the machine off, the former tenant's system may be what asks.
pub fn hammer_may_boot(tables: &Tables, machine: &Machine) -> bool {
    let is_going_down = matches!(machine.phase, Phase::ReclaimPowerOff | Phase::ReclaimPorts);
    boot_target(tables, machine.id) == BootTarget::Hammer && !is_going_down
}

/// `true` if hammer may run, also after the installation, while it waits for the order to reboot. A
/// hammer that runs already stays on a locked machine: it is told to do nothing.
pub fn hammer_may_run(machine: &Machine) -> bool {
    let is_leaving = matches!(machine.phase, Phase::BootOrder | Phase::Rebooting)
        && machine.segment != Segment::Tenant;
    let is_going_down = matches!(machine.phase, Phase::ReclaimPowerOff | Phase::ReclaimPorts);
    is_leaving || (by_phase(machine) == BootTarget::Hammer && !is_going_down)
}

/// The target by phase and lock. A locked machine does not boot hammer, which wipes and installs.
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

/// The target by the phase alone.
fn by_phase(machine: &Machine) -> BootTarget {
    match machine.phase {
        Phase::BootOrder | Phase::Rebooting | Phase::TenantPorts | Phase::Running => {
            BootTarget::Disk
        }
        // Its ports are isolated: a request with its identity comes from somewhere else.
        Phase::Held(HoldCause::Bmc) if machine.segment == Segment::Isolated => BootTarget::None,
        // It may be in the last tenant's segment still, where hammer must not run.
        Phase::Held(HoldCause::Ports) => BootTarget::None,
        _ => BootTarget::Hammer,
    }
}
