//! Limits of phases: deadlines and attempts of steps.

/// Most attempts of a step of the life cycle, reboots of a silent machine included. Beyond it the
/// machine is held, or left silent if no tenant and no reclaim waits for it.
pub const STEP_ATTEMPTS_MAX: u32 = 3;
/// Longest silence of a machine that must come up for a tenant or after a reclaim, milliseconds.
/// Beyond it its BMC reboots it.
pub(super) const NUDGE_AFTER_MS: u64 = 15 * 60_000;
/// Longest silence of a free machine, milliseconds. Beyond it its BMC reboots it. Longer than for a
/// tenant's machine, because nobody waits.
pub(super) const RESURRECT_AFTER_MS: u64 = 60 * 60_000;
/// Longest wait for the BMC to set the boot device, milliseconds. Beyond it hammer is told to
/// reboot without.
pub(super) const BOOT_ORDER_MS: u64 = 30_000;
/// Longest wait for hammer's last event, milliseconds. Beyond it the BMC power-cycles the machine.
/// Hammer needs seconds to flush its events.
pub(super) const HANDOVER_MS: u64 = 60_000;
/// Longest wait for the first phone home, milliseconds. Beyond it the machine's reason says so;
/// nothing is rebooted, because the system is the tenant's.
pub(super) const FIRST_PHONE_HOME_MS: u64 = 30 * 60_000;
/// Longest wait for a switch to report a moved port, milliseconds. Beyond it the machine's reason
/// names the port.
pub(super) const PORTS_MS: u64 = 30_000;
/// Longest wait for a switch to report a moved port, milliseconds. Beyond it a machine in a reclaim,
/// which is powered off, is held, and one on its way to a tenant runs with the ports that it has.
pub(super) const PORTS_HOLD_MS: u64 = 10 * 60_000;
