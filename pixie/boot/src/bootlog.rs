//! Who asked to boot, and whether that boot has had its ticket.

use std::collections::BTreeMap;

use proto_types::{MacAddr, MachineId};

/// A boot gives a right to a ticket for so long: time to load an installer over a slow network.
pub const BOOT_VALID_MS: u64 = 15 * 60 * 1000;
/// Boots remembered at most; the oldest is forgotten first.
pub const BOOTS_MAX: usize = 10_000;

/// Why a machine gets no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TicketRefusal {
    #[error("no lease of {mac} is held by this address")]
    NoLease { mac: MacAddr },
    #[error("this machine did not ask to boot, or too long ago: boot it again")]
    NoBoot,
    #[error("this machine booted with another Ethernet address, {mac}")]
    OtherMac { mac: MacAddr },
    #[error("this machine was not sent to the installer")]
    NotInstaller,
    #[error("this boot has had its ticket: boot again for another")]
    Used,
}

#[derive(Debug, Clone)]
struct Boot {
    mac: MacAddr,
    at_ms: u64,
    hammer: bool,
    ticket: bool,
}

/// The last boot of each machine.
#[derive(Debug, Clone, Default)]
pub struct BootLog(BTreeMap<MachineId, Boot>);

impl BootLog {
    /// Notes that a machine was sent a script; `hammer` when it was the installer's.
    pub fn note(&mut self, machine: MachineId, mac: MacAddr, hammer: bool, now_ms: u64) {
        if self.0.len() >= BOOTS_MAX && !self.0.contains_key(&machine) {
            let oldest = self
                .0
                .iter()
                .min_by_key(|(_, b)| b.at_ms)
                .map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(
            machine,
            Boot {
                mac,
                at_ms: now_ms,
                hammer,
                ticket: false,
            },
        );
    }

    /// Whether a machine may have a ticket: `holder` is who holds the asking address.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(
        &self,
        machine: MachineId,
        mac: MacAddr,
        holder: Option<MacAddr>,
        now_ms: u64,
    ) -> Result<(), TicketRefusal> {
        if holder != Some(mac) {
            return Err(TicketRefusal::NoLease { mac });
        }
        let boot = self.0.get(&machine).ok_or(TicketRefusal::NoBoot)?;
        if boot.mac != mac {
            return Err(TicketRefusal::OtherMac { mac: boot.mac });
        }
        if now_ms.saturating_sub(boot.at_ms) > BOOT_VALID_MS {
            return Err(TicketRefusal::NoBoot);
        }
        if !boot.hammer {
            return Err(TicketRefusal::NotInstaller);
        }
        if boot.ticket {
            Err(TicketRefusal::Used)
        } else {
            Ok(())
        }
    }

    /// Takes the boot's right to a ticket, before control is asked: two requests at once get one.
    ///
    /// # Errors
    /// As [`BootLog::check`].
    pub fn take(
        &mut self,
        machine: MachineId,
        mac: MacAddr,
        holder: Option<MacAddr>,
        now_ms: u64,
    ) -> Result<(), TicketRefusal> {
        self.check(machine, mac, holder, now_ms)?;
        if let Some(boot) = self.0.get_mut(&machine) {
            boot.ticket = true;
        }
        Ok(())
    }

    /// Gives the right back: control did not make a ticket.
    pub fn give_back(&mut self, machine: MachineId) {
        if let Some(boot) = self.0.get_mut(&machine) {
            boot.ticket = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn id(n: u128) -> MachineId {
        MachineId::new(Uuid::from_u128(n))
    }

    #[test]
    fn one_ticket_a_boot_for_the_address_that_booted() {
        let mut log = BootLog::default();
        log.note(id(1), MAC, true, 1000);
        let take = |log: &mut BootLog, n, mac, holder, at| log.take(id(n), mac, holder, at);
        assert_eq!(
            take(&mut log, 1, MAC, None, 1001),
            Err(TicketRefusal::NoLease { mac: MAC })
        );
        assert_eq!(
            take(&mut log, 1, MAC, Some(OTHER), 1001),
            Err(TicketRefusal::NoLease { mac: MAC })
        );
        assert_eq!(
            take(&mut log, 1, OTHER, Some(OTHER), 1001),
            Err(TicketRefusal::OtherMac { mac: MAC })
        );
        assert_eq!(
            take(&mut log, 2, MAC, Some(MAC), 1001),
            Err(TicketRefusal::NoBoot)
        );
        let late = 1001 + BOOT_VALID_MS;
        assert_eq!(
            take(&mut log, 1, MAC, Some(MAC), late),
            Err(TicketRefusal::NoBoot)
        );
        assert_eq!(take(&mut log, 1, MAC, Some(MAC), 1001), Ok(()));
        assert_eq!(
            take(&mut log, 1, MAC, Some(MAC), 1001),
            Err(TicketRefusal::Used)
        );
        log.give_back(id(1));
        assert_eq!(take(&mut log, 1, MAC, Some(MAC), 1001), Ok(()));
        log.note(id(1), MAC, true, 2000);
        assert_eq!(
            take(&mut log, 1, MAC, Some(MAC), 2001),
            Ok(()),
            "a new boot"
        );
    }

    #[test]
    fn a_machine_sent_to_its_disk_gets_none() {
        let mut log = BootLog::default();
        log.note(id(1), MAC, false, 1000);
        assert_eq!(
            log.check(id(1), MAC, Some(MAC), 1001),
            Err(TicketRefusal::NotInstaller)
        );
    }

    #[test]
    fn the_oldest_boot_is_forgotten_first() {
        let mut log = BootLog::default();
        for n in 0..=BOOTS_MAX as u128 {
            log.note(id(n), MAC, true, n as u64);
        }
        assert_eq!(
            log.check(id(0), MAC, Some(MAC), 1),
            Err(TicketRefusal::NoBoot)
        );
        assert_eq!(log.check(id(1), MAC, Some(MAC), 1), Ok(()));
    }
}
