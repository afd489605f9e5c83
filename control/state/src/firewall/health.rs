//! The health of firewalls, as their agents' reports and signs of life tell it.

use std::fmt;

use crate::firewall::entity::FirewallStatus;
use crate::firewall::fault::{FirewallFault, lacks_agent};
use crate::firewall::read::own_status;
use crate::machine::entity::{EventLog, Liveliness, Machine, Phase};
use crate::tables::Tables;

/// A reason why a firewall is not healthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirewallAilment {
    /// Its system does not run yet.
    NotRunning(Phase),
    /// The published hammer installed it, without an agent.
    NoAgent,
    /// Its agent has not reported any rules in its kernel.
    NoRules,
    /// Its agent reported why its newest rules are not in its kernel.
    NotApplied(String),
    /// It boots again and again.
    CrashLoop,
    /// It is silent.
    Silent,
}

impl fmt::Display for FirewallAilment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning(phase) => write!(f, "its system does not run yet (phase {phase})"),
            Self::NoAgent => f.write_str(&FirewallFault::NoAgent.problem()),
            Self::NoRules => f.write_str("its agent has not reported rules in its kernel"),
            Self::NotApplied(error) => {
                write!(f, "its newest rules are not in its kernel: {error}")
            }
            Self::CrashLoop => f.write_str("it boots again and again"),
            Self::Silent => f.write_str("it gives no sign of life"),
        }
    }
}

/// The first reason why a firewall is not healthy. `None` means that it is.
pub(crate) fn ailment(tables: &Tables, machine: &Machine) -> Option<FirewallAilment> {
    if machine.phase != Phase::Running {
        return Some(FirewallAilment::NotRunning(machine.phase));
    }
    let Some(status) = own_status(tables, machine).filter(|status| status.applied_generation > 0)
    else {
        return Some(match lacks_agent(tables, machine) {
            true => FirewallAilment::NoAgent,
            false => FirewallAilment::NoRules,
        });
    };
    if let Some(error) = &status.error {
        return Some(FirewallAilment::NotApplied(error.clone()));
    }
    match tables.get::<EventLog>(&machine.id) {
        Some(log) if log.crash_loop => Some(FirewallAilment::CrashLoop),
        Some(log) if log.liveliness == Liveliness::Alive => None,
        _ => Some(FirewallAilment::Silent),
    }
}

/// `true` if the newest rules are in the kernel.
pub(crate) fn has_applied(status: &FirewallStatus) -> bool {
    status.applied_generation > 0 && status.error.is_none()
}

/// `true` if the machine gives signs of life and completes its boots.
pub(crate) fn is_alive(log: &EventLog) -> bool {
    log.liveliness == Liveliness::Alive && !log.crash_loop
}
