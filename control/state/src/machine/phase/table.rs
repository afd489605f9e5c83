//! The transition table: the events that count in each phase, with their guards and effects.

use super::effect::Effect;
use super::event::PhaseEvent::{
    self, Allocated, BmcGaveUp, BootDiskEnded, BootOrderLate, Freed, HammerLeft, HandoverLate,
    InstallFailed, Installed, MadeAvailable, NotPhonedHome, PhonedHome, PhonedHomeEarly, PortsLate,
    PortsMoved, PortsNeverMoved, PoweredOff, PoweredOn, RegisteredClean, RegisteredDirty, Silent,
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
use super::transition::Transition;
use crate::machine::entity::{HoldCause, Phase};

const HELD_INSTALL: Phase = Phase::Held(HoldCause::Install);
const HELD_WIPE: Phase = Phase::Held(HoldCause::Wipe);
const HELD_BMC: Phase = Phase::Held(HoldCause::Bmc);
const HELD_PORTS: Phase = Phase::Held(HoldCause::Ports);

/// Every phase, in the order of a machine's life.
pub(super) const PHASES: [Phase; 16] = [
    Phase::New,
    Phase::Wiping,
    Phase::Waiting,
    Phase::Installing,
    Phase::BootOrder,
    Phase::Rebooting,
    Phase::TenantPorts,
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

/// The deadlines of a phase, in the order in which they are tried. Empty means that the phase may
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
        Phase::TenantPorts => TENANT_PORTS,
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
// No hold after the last reboot: a free machine that is heard again goes on by itself. A
// registration during the wipe stays in the phase: hammer that restarted wipes from the beginning.
const WIPING: &[Transition] = &[
    Transition::to(Wiped, Phase::Waiting),
    Transition::to(WipeFailed, HELD_WIPE),
    rebooted(Phase::Wiping, RESURRECT_AFTER_MS),
    silent_for_good(Phase::Wiping, RESURRECT_AFTER_MS).does(Effect::Remark),
];
// A machine may register dirty while it waits, when a disk was added or swapped.
const WAITING: &[Transition] = &[
    TO_WIPING,
    // Marked dirty at the allocation and not at the installation: a tenant that frees the machine
    // half-way leaves data as well.
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
// The phase ends in any case: a BMC that cannot set the boot device must not stop an installed
// machine, which pixie sends to its disk.
const BOOT_ORDER: &[Transition] = &[
    Transition::to(BootDiskEnded, Phase::Rebooting),
    Transition::to(HammerLeft, Phase::Rebooting)
        .when(IsInstalled)
        .does(Effect::HandOver),
    PHONED_HOME,
    PHONED_HOME_EARLY,
    FREED,
    Transition::to(BootOrderLate, Phase::Rebooting).after(BOOT_ORDER_MS),
];
const PHONED_HOME: Transition = Transition::to(PhonedHome, Phase::Running)
    .when(IsInstalled)
    .does(Effect::HandOver);
const PHONED_HOME_EARLY: Transition = Transition::to(PhonedHomeEarly, Phase::TenantPorts)
    .when(IsInstalled)
    .does(Effect::HandOver);
// The deadlines of this phase change no phase: whether the system comes up is the tenant's matter,
// only the ports wait for hammer's end. The remark comes first in the list, and its guard lets the
// handover follow once a reason is set.
const REBOOTING: &[Transition] = &[
    PHONED_HOME,
    PHONED_HOME_EARLY,
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
// The wait ends: a leaf that is down must not keep a machine from its tenant that reaches it over
// the other one. The reason of the running machine names the port.
const TENANT_PORTS: &[Transition] = &[
    Transition::to(PortsMoved, Phase::Running),
    FREED,
    Transition::to(PortsNeverMoved, Phase::Running).after(PORTS_HOLD_MS),
    Transition::to(PortsLate, Phase::TenantPorts)
        .after(PORTS_MS)
        .does(Effect::Remark),
];
const RUNNING: &[Transition] = &[FREED];
// Isolated and not moved to provisioning: the tenant's system may run on, and must not meet the
// machines that boot there.
const RECLAIM_POWER_OFF: &[Transition] = &[
    Transition::to(PoweredOff, Phase::ReclaimPorts).does(Effect::Provision),
    Transition::to(BmcGaveUp, HELD_BMC).does(Effect::Isolate),
];
// The hold comes before the remark: the first row that is due is taken, and the remark is due again
// and again.
const RECLAIM_PORTS: &[Transition] = &[
    Transition::to(PortsMoved, Phase::ReclaimBoot).does(Effect::BootNetwork),
    Transition::to(PortsNeverMoved, HELD_PORTS).after(PORTS_HOLD_MS),
    Transition::to(PortsLate, Phase::ReclaimPorts)
        .after(PORTS_MS)
        .does(Effect::Remark),
];
// Hammer may register before the BMC confirms the power-on: the registration proves it.
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
// Tainted by the failed wipe, the machine stays held until an operator makes it available.
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
// The reclaim begins with the power-off again: somebody may have powered the machine on meanwhile.
const IN_HOLD_PORTS: &[Transition] = &[
    RECLAIMED_AGAIN,
    Transition::to(PortsMoved, Phase::ReclaimPowerOff).does(Effect::PowerOff),
];

/// The reboot of a silent machine, which stays in its phase.
const fn rebooted(phase: Phase, after_ms: u64) -> Transition {
    Transition::to(Silent, phase)
        .when(HasAttemptsLeft)
        .after_silence(after_ms)
        .does(Effect::Reboot)
}

/// The end of a silent machine's reboots.
const fn silent_for_good(next: Phase, after_ms: u64) -> Transition {
    Transition::to(SilentForGood, next)
        .when(HasNoAttemptsLeft)
        .after_silence(after_ms)
}
