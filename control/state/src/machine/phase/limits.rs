//! Limits of phases: how long a machine may stay in one, and how often a step is tried.

/// How often a step of the life cycle is tried, reboots of a silent machine included.
pub const STEP_ATTEMPTS_MAX: u32 = 3;
/// Silence after which a machine that shall come up for a tenant or after a reclaim is rebooted,
/// milliseconds.
pub(super) const NUDGE_AFTER_MS: u64 = 15 * 60_000;
/// Silence after which a machine that nobody has is rebooted, milliseconds.
pub(super) const RESURRECT_AFTER_MS: u64 = 60 * 60_000;
/// Longest wait for the BMC to set the boot device before hammer is told to reboot, milliseconds.
pub(super) const BOOT_ORDER_MS: u64 = 30_000;
/// Time that hammer has to say that it leaves before its BMC power-cycles it, milliseconds: the
/// flush of its events takes seconds.
pub(super) const HANDOVER_MS: u64 = 60_000;
/// Time without a call of the installed system that is worth a remark, milliseconds.
pub(super) const FIRST_PHONE_HOME_MS: u64 = 30 * 60_000;
/// Time that a switch has to report a moved port before the machine's reason names it,
/// milliseconds.
pub(super) const PORTS_MS: u64 = 30_000;
/// Time that a switch has before the machine is held, milliseconds. The machine is powered off.
pub(super) const PORTS_HOLD_MS: u64 = 10 * 60_000;
