//! The last boot of each machine, and whether its ticket was handed out.

use std::collections::BTreeMap;

use proto_types::{MacAddr, MachineId};

/// Time after a boot within which its ticket may be requested, ms: enough to load an installer over
/// a slow network. A later request is refused.
pub const BOOT_VALID_MS: u64 = 15 * 60 * 1000;
/// Boots kept in memory. A further one evicts the oldest.
pub const BOOTS_MAX: usize = 10_000;

/// The reason why a machine gets no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TicketRefusal {
    #[error("this address does not hold a lease of {mac}")]
    NoLease { mac: MacAddr },
    #[error("this machine has not booted, or its boot was too long ago: boot it again")]
    NoBoot,
    #[error("this machine booted with another Ethernet address, {mac}")]
    OtherMac { mac: MacAddr },
    #[error("this machine was not sent to the installer")]
    NotInstaller,
    #[error("the ticket of this boot was handed out already: boot again for another")]
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
    /// Records that a machine was sent a script. `hammer` is `true` if it boots the installer.
    pub fn note(&mut self, machine: MachineId, mac: MacAddr, hammer: bool, now_ms: u64) {
        // The UUIDs come from the network. Without the bound one host could fill the memory.
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
                // Each boot has its own right to one ticket.
                ticket: false,
            },
        );
    }

    /// Checks that a machine may have a ticket. `holder` is the Ethernet address that holds the
    /// requesting IP address.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn check(
        &self,
        machine: MachineId,
        mac: MacAddr,
        holder: Option<MacAddr>,
        now_ms: u64,
    ) -> Result<(), TicketRefusal> {
        // The request itself proves nothing: any host on the network can name a UUID and a MAC. The
        // lease ties it to the card that booted.
        if holder != Some(mac) {
            return Err(TicketRefusal::NoLease { mac });
        }
        let boot = self.0.get(&machine).ok_or(TicketRefusal::NoBoot)?;
        // The lease proves the card, this check the machine: no card gets a ticket for a machine
        // that booted over another one.
        if boot.mac != mac {
            return Err(TicketRefusal::OtherMac { mac: boot.mac });
        }
        // A clock that was set back since the boot counts as no time.
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

    /// Takes the boot's right to a ticket, and returns the boot's time. It is called before control
    /// issues the ticket, so that only one of two concurrent requests succeeds.
    ///
    /// # Errors
    /// As [`BootLog::check`].
    pub fn take(
        &mut self,
        machine: MachineId,
        mac: MacAddr,
        holder: Option<MacAddr>,
        now_ms: u64,
    ) -> Result<u64, TicketRefusal> {
        self.check(machine, mac, holder, now_ms)?;
        let boot = self.0.get_mut(&machine).ok_or(TicketRefusal::NoBoot)?;
        boot.ticket = true;
        Ok(boot.at_ms)
    }

    /// Gives the right of the boot at a time back, after control failed to issue the ticket.
    pub fn give_back(&mut self, machine: MachineId, at_ms: u64) {
        // The machine may have booted again meanwhile. Its new boot has a right of its own, and may
        // have used it.
        let boot = self.0.get_mut(&machine);
        if let Some(boot) = boot.filter(|boot| boot.at_ms == at_ms) {
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
        assert_eq!(take(&mut log, 1, MAC, Some(MAC), 1001), Ok(1000));
        assert_eq!(
            take(&mut log, 1, MAC, Some(MAC), 1001),
            Err(TicketRefusal::Used)
        );
        log.give_back(id(1), 1000);
        assert_eq!(take(&mut log, 1, MAC, Some(MAC), 1001), Ok(1000));
        log.note(id(1), MAC, true, 2000);
        assert_eq!(
            take(&mut log, 1, MAC, Some(MAC), 2001),
            Ok(2000),
            "a new boot"
        );
        log.give_back(id(1), 1000);
        assert_eq!(
            take(&mut log, 1, MAC, Some(MAC), 2001),
            Err(TicketRefusal::Used),
            "the right of the boot before is not this one's"
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
