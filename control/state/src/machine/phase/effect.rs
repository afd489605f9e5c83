//! Effects of transitions beside the change of phase.

use crate::machine::entity::{Machine, Segment};

/// The effect of a transition beside the change of phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// No effect.
    None,
    /// The ports go to the provisioning segment.
    Provision,
    /// Disks count as dirty from now on.
    MarkDirty,
    /// The BMC is told to boot from disk.
    BootDisk,
    /// The ports go to the tenant's segment.
    HandOver,
    /// Disks count as dirty, and the BMC is told to power off.
    PowerOff,
    /// The allocation's numbers are released, and the BMC is told to boot from the network.
    BootNetwork,
    /// The ports are isolated: the tenant's system may still run.
    Isolate,
    /// The machine's reason says what it waits for.
    Remark,
    /// The BMC is told to power-cycle, so that hammer ends.
    PowerCycle,
    /// The BMC is told to reboot from the network.
    Reboot,
}

impl Effect {
    /// Applies the part that concerns the machine's own row. Orders to the BMC are the caller's.
    pub(super) fn change(self, machine: &mut Machine) {
        match self {
            Self::Provision => machine.segment = Segment::Provisioning,
            Self::HandOver => machine.segment = Segment::Tenant,
            Self::Isolate => machine.segment = Segment::Isolated,
            // Serial numbers of wiped disks go with the mark: a disk that a tenant wrote to would
            // be skipped by the next wipe.
            Self::MarkDirty | Self::PowerOff => {
                machine.dirty = true;
                machine.clean_disks.clear();
            }
            Self::None
            | Self::BootDisk
            | Self::BootNetwork
            | Self::Remark
            | Self::PowerCycle
            | Self::Reboot => {}
        }
    }

    /// Label in the diagram; `None` means no effect.
    pub(super) const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Provision => Some("ports to provisioning"),
            Self::MarkDirty => Some("disks count as dirty"),
            Self::BootDisk => Some("BMC boots from disk"),
            Self::HandOver => Some("ports to the tenant"),
            Self::PowerOff => Some("BMC powers off"),
            Self::BootNetwork => Some("numbers released, BMC boots from the network"),
            Self::Isolate => Some("ports isolated"),
            Self::Remark => Some("the reason says so"),
            Self::PowerCycle => Some("BMC power-cycles"),
            Self::Reboot => Some("BMC reboots from the network"),
        }
    }
}
