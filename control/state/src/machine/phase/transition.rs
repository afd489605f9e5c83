//! A row of the table: what an event does to a machine in a phase.

use super::event::PhaseEvent;
use super::guard::PhaseGuard;
use crate::machine::entity::{Machine, Phase, Segment};

/// A transition, or what time does to a machine that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transition {
    /// The event.
    pub(crate) event: PhaseEvent,
    /// The phase after it. The same phase means that the machine stays.
    pub(crate) next: Phase,
    /// The condition beside the phase.
    pub(crate) guard: PhaseGuard,
    /// When time alone makes the event. `None` of all other events.
    pub(crate) deadline: Option<Deadline>,
    /// The consequence beside the phase.
    pub(crate) effect: Effect,
}

/// When time makes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    /// Milliseconds on the clock.
    pub(crate) after_ms: u64,
    /// The clock that counts.
    pub(crate) clock: Clock,
}

/// The time that a deadline counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The time since the machine entered its phase.
    InPhase,
    /// The time since the machine's last sign of life.
    Silence,
}

/// The consequence of a transition beside the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
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
    /// The ports are isolated: nobody knows what runs on the machine.
    Isolate,
    /// The machine's reason says what is awaited.
    Remark,
    /// The BMC is told to power-cycle, so that hammer ends.
    PowerCycle,
    /// The BMC is told to reboot from the network.
    Reboot,
}

impl Effect {
    /// Carries out what concerns the machine's own row.
    pub(super) fn change(self, machine: &mut Machine) {
        match self {
            Self::Provision => machine.segment = Segment::Provisioning,
            Self::HandOver => machine.segment = Segment::Tenant,
            Self::Isolate => machine.segment = Segment::Isolated,
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

    /// Words for people; `None` where nothing happens beside.
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

impl Transition {
    /// A transition without guard and effect.
    pub(super) const fn to(event: PhaseEvent, next: Phase) -> Self {
        Self {
            event,
            next,
            guard: PhaseGuard::Always,
            deadline: None,
            effect: Effect::None,
        }
    }
    /// The same with a guard.
    pub(super) const fn when(self, guard: PhaseGuard) -> Self {
        Self { guard, ..self }
    }
    /// The same with an effect.
    pub(super) const fn does(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }
    /// The same for an event that happens after a time in the phase.
    pub(super) const fn after(self, after_ms: u64) -> Self {
        let clock = Clock::InPhase;
        let deadline = Some(Deadline { after_ms, clock });
        Self { deadline, ..self }
    }
    /// The same for an event that happens after a time of silence.
    pub(super) const fn after_silence(self, after_ms: u64) -> Self {
        let clock = Clock::Silence;
        let deadline = Some(Deadline { after_ms, clock });
        Self { deadline, ..self }
    }
}
