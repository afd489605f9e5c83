//! The table: every event that counts in a phase, and what it does.

use super::event::PhaseEvent::{
    self, Allocated, BmcGaveUp, BootDiskEnded, BootOrderLate, Freed, HammerLeft, HandoverLate,
    InstallFailed, Installed, MadeAvailable, NotPhonedHome, PhonedHome, PortsLate, PortsMoved,
    PortsNeverMoved, PoweredOff, PoweredOn, RegisteredClean, RegisteredDirty, Silent,
    SilentForGood, WipeFailed, Wiped,
};
use super::guard::PhaseGuard::{
    HammerIsThere, HasAttemptsLeft, HasNoAttemptsLeft, HasNoReason, IsAllocated, IsAvailable,
    IsClean, IsInstalled, IsReachable,
};
use super::limits::{
    BOOT_ORDER_MS, FIRST_PHONE_HOME_MS, HANDOVER_MS, NUDGE_AFTER_MS, PORTS_HOLD_MS, PORTS_MS,
    RESURRECT_AFTER_MS,
};
use super::transition::{Effect, Transition};
use crate::machine::entity::{HoldCause, Phase};

const HELD_INSTALL: Phase = Phase::Held(HoldCause::Install);
const HELD_WIPE: Phase = Phase::Held(HoldCause::Wipe);
const HELD_BMC: Phase = Phase::Held(HoldCause::Bmc);
const HELD_PORTS: Phase = Phase::Held(HoldCause::Ports);

/// Every phase, in the order of a machine's life.
pub(super) const PHASES: [Phase; 15] = [
    Phase::New,
    Phase::Wiping,
    Phase::Waiting,
    Phase::Installing,
    Phase::BootOrder,
    Phase::Rebooting,
    Phase::Running,
    Phase::ReclaimPowerOff,
    Phase::ReclaimPorts,
    Phase::ReclaimBoot,
    Phase::ReclaimRegister,
    HELD_INSTALL,
    HELD_WIPE,
    HELD_BMC,
    HELD_PORTS,
];

/// The row of an event in a phase. `None` means that the event does not change the phase.
pub(crate) fn next(phase: Phase, event: PhaseEvent) -> Option<&'static Transition> {
    rows(phase).iter().find(|row| row.event == event)
}

/// The deadlines of a phase, in the order in which they are tried. Empty for phases that may
/// last.
pub(crate) fn deadlines(phase: Phase) -> impl Iterator<Item = &'static Transition> {
    rows(phase).iter().filter(|row| row.deadline.is_some())
}

/// The rows of a phase.
pub(super) const fn rows(phase: Phase) -> &'static [Transition] {
    match phase {
        Phase::New => NEW,
        Phase::Wiping => WIPING,
        Phase::Waiting => WAITING,
        Phase::Installing => INSTALLING,
        Phase::BootOrder => BOOT_ORDER,
        Phase::Rebooting => REBOOTING,
        Phase::Running => RUNNING,
        Phase::ReclaimPowerOff => RECLAIM_POWER_OFF,
        Phase::ReclaimPorts => RECLAIM_PORTS,
        Phase::ReclaimBoot => RECLAIM_BOOT,
        Phase::ReclaimRegister => RECLAIM_REGISTER,
        Phase::Held(HoldCause::Install) => IN_HOLD_INSTALL,
        Phase::Held(HoldCause::Wipe) => IN_HOLD_WIPE,
        Phase::Held(HoldCause::Bmc) => IN_HOLD_BMC,
        Phase::Held(HoldCause::Ports) => IN_HOLD_PORTS,
    }
}

const TO_WIPING: Transition =
    Transition::to(RegisteredDirty, Phase::Wiping).does(Effect::Provision);
const TO_WAITING: Transition =
    Transition::to(RegisteredClean, Phase::Waiting).does(Effect::Provision);
const FREED: Transition = Transition::to(Freed, Phase::ReclaimPowerOff)
    .when(IsAllocated)
    .does(Effect::PowerOff);
const RECLAIMED_AGAIN: Transition =
    Transition::to(MadeAvailable, Phase::ReclaimPowerOff).does(Effect::PowerOff);

const NEW: &[Transition] = &[TO_WIPING, TO_WAITING];
const WIPING: &[Transition] = &[
    Transition::to(Wiped, Phase::Waiting),
    Transition::to(WipeFailed, HELD_WIPE),
    rebooted(Phase::Wiping, RESURRECT_AFTER_MS),
    silent_for_good(Phase::Wiping, RESURRECT_AFTER_MS).does(Effect::Remark),
];
const WAITING: &[Transition] = &[
    TO_WIPING,
    Transition::to(Allocated, Phase::Installing)
        .when(IsClean)
        .does(Effect::MarkDirty),
    rebooted(Phase::Waiting, RESURRECT_AFTER_MS),
    silent_for_good(Phase::Waiting, RESURRECT_AFTER_MS).does(Effect::Remark),
];
const INSTALLING: &[Transition] = &[
    Transition::to(Installed, Phase::BootOrder).does(Effect::BootDisk),
    Transition::to(InstallFailed, HELD_INSTALL),
    FREED,
    rebooted(Phase::Installing, NUDGE_AFTER_MS),
    silent_for_good(HELD_INSTALL, NUDGE_AFTER_MS),
];
const BOOT_ORDER: &[Transition] = &[
    Transition::to(BootDiskEnded, Phase::Rebooting),
    Transition::to(HammerLeft, Phase::Rebooting)
        .when(IsInstalled)
        .does(Effect::HandOver),
    PHONED_HOME,
    FREED,
    Transition::to(BootOrderLate, Phase::Rebooting).after(BOOT_ORDER_MS),
];
const PHONED_HOME: Transition = Transition::to(PhonedHome, Phase::Running)
    .when(IsInstalled)
    .does(Effect::HandOver);
const REBOOTING: &[Transition] = &[
    PHONED_HOME,
    FREED,
    Transition::to(NotPhonedHome, Phase::Rebooting)
        .when(HasNoReason)
        .after(FIRST_PHONE_HOME_MS)
        .does(Effect::Remark),
    Transition::to(HandoverLate, Phase::Rebooting)
        .when(HammerIsThere)
        .after(HANDOVER_MS)
        .does(Effect::PowerCycle),
];
const RUNNING: &[Transition] = &[FREED];
const RECLAIM_POWER_OFF: &[Transition] = &[
    Transition::to(PoweredOff, Phase::ReclaimPorts).does(Effect::Provision),
    Transition::to(BmcGaveUp, HELD_BMC).does(Effect::Isolate),
];
const RECLAIM_PORTS: &[Transition] = &[
    Transition::to(PortsMoved, Phase::ReclaimBoot).does(Effect::BootNetwork),
    Transition::to(PortsNeverMoved, HELD_PORTS).after(PORTS_HOLD_MS),
    Transition::to(PortsLate, Phase::ReclaimPorts)
        .after(PORTS_MS)
        .does(Effect::Remark),
];
const RECLAIM_BOOT: &[Transition] = &[
    Transition::to(PoweredOn, Phase::ReclaimRegister),
    Transition::to(BmcGaveUp, HELD_BMC),
    TO_WIPING,
    TO_WAITING,
];
const RECLAIM_REGISTER: &[Transition] = &[
    TO_WIPING,
    TO_WAITING,
    rebooted(Phase::ReclaimRegister, NUDGE_AFTER_MS),
    silent_for_good(HELD_BMC, NUDGE_AFTER_MS),
];
const IN_HOLD_INSTALL: &[Transition] = &[FREED];
const IN_HOLD_WIPE: &[Transition] = &[
    Transition::to(MadeAvailable, Phase::Wiping),
    TO_WIPING.when(IsAvailable),
    TO_WAITING.when(IsAvailable),
];
const IN_HOLD_BMC: &[Transition] = &[
    RECLAIMED_AGAIN,
    TO_WIPING.when(IsReachable),
    TO_WAITING.when(IsReachable),
];
// It waited for long: somebody may have powered it on meanwhile.
const IN_HOLD_PORTS: &[Transition] = &[
    RECLAIMED_AGAIN,
    Transition::to(PortsMoved, Phase::ReclaimPowerOff).does(Effect::PowerOff),
];

/// A silent machine is rebooted and stays in its phase.
const fn rebooted(phase: Phase, after_ms: u64) -> Transition {
    Transition::to(Silent, phase)
        .when(HasAttemptsLeft)
        .after_silence(after_ms)
        .does(Effect::Reboot)
}

/// Reboots did not help.
const fn silent_for_good(next: Phase, after_ms: u64) -> Transition {
    Transition::to(SilentForGood, next)
        .when(HasNoAttemptsLeft)
        .after_silence(after_ms)
}
