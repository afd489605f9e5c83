//! The body of a machine: its power, its boot device, and what is on its disk.

use control_state::BmcAction;
use proto_types::{AllocationId, ProjectId};

use super::calls::Proof;

/// The truth about a disk, whatever control believes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Disk {
    /// It may hold anything.
    #[default]
    Unknown,
    /// It was wiped.
    Clean,
    /// Data of a project.
    Data(ProjectId),
    /// The whole system of an allocation.
    System {
        project: ProjectId,
        allocation: AllocationId,
    },
}

/// A machine without its disk.
#[derive(Debug, Default)]
pub(crate) struct Chassis {
    pub(crate) is_on: bool,
    /// Counts power-ons and resets: what began in an earlier cycle has ended.
    pub(crate) cycle: u64,
    pub(crate) boots_from_disk: bool,
    /// Proof of the agent that runs and is heard. `None` means that nobody is.
    pub(crate) session: Option<Proof>,
    /// Virtual time until which its messages get nowhere, milliseconds.
    pub(crate) away_until_ms: u64,
}

impl Chassis {
    /// Is the power cycle of this number still running?
    pub(crate) fn lives(&self, cycle: u64) -> bool {
        self.is_on && self.cycle == cycle
    }

    /// Turns the power off and on.
    pub(crate) fn reset(&mut self) {
        self.is_on = true;
        self.begin_cycle();
    }

    fn begin_cycle(&mut self) {
        self.cycle += 1;
        self.session = None;
    }

    /// Does what its BMC is told.
    pub(crate) fn obey(&mut self, action: BmcAction) {
        match action {
            BmcAction::PowerOn if !self.is_on => self.reset(),
            BmcAction::PowerOff => {
                self.is_on = false;
                self.begin_cycle();
            }
            BmcAction::PowerReset | BmcAction::PowerCycle => self.reset(),
            BmcAction::BootPxe => self.boots_from_disk = false,
            BmcAction::BootDisk => self.boots_from_disk = true,
            BmcAction::PowerOn
            | BmcAction::BootBios
            | BmcAction::LedOn
            | BmcAction::LedOff
            | BmcAction::SetNonce => {}
        }
    }
}
