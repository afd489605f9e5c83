//! The table of machines and their boot targets, as control sends it.

use std::collections::BTreeMap;

use proto_types::{MacAddr, MachineId};

/// The boot target of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The installer: the machine is unallocated, being reclaimed, or to be installed.
    Hammer,
    /// The installed system on its disk.
    Disk,
    /// Nothing: the machine is held out of service.
    Nothing,
}

/// One machine of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub id: MachineId,
    pub target: Target,
}

/// All machines of the partition, by UUID and by each of their Ethernet addresses.
#[derive(Debug, Clone, Default)]
pub struct Machines {
    by_id: BTreeMap<MachineId, Target>,
    by_mac: BTreeMap<MacAddr, MachineId>,
    needs_script: bool,
}

impl Machines {
    /// Adds or replaces a machine.
    pub fn insert(
        &mut self,
        id: MachineId,
        macs: impl IntoIterator<Item = MacAddr>,
        target: Target,
    ) {
        self.by_id.insert(id, target);
        // A card that two machines list belongs to the later one. `find` uses it only for firmware
        // without a UUID.
        self.by_mac.extend(macs.into_iter().map(|mac| (mac, id)));
    }

    /// Sets `needs_script`, which is `true` if the installer is not the one of pixie's
    /// configuration. A unified kernel image of that configuration would be the wrong installer, so
    /// every machine is then sent to its script.
    pub fn set_needs_script(&mut self, needs_script: bool) {
        self.needs_script = needs_script;
    }

    /// `true` if only a script leads to the right installer.
    #[must_use]
    pub fn needs_script(&self) -> bool {
        self.needs_script
    }

    /// Number of machines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// `true` if the table has no machine.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The machine that an Ethernet address belongs to.
    #[must_use]
    pub fn owner(&self, mac: MacAddr) -> Option<MachineId> {
        self.by_mac.get(&mac).copied()
    }

    /// Finds a machine by its UUID. `None` as `id` means that the firmware reports no UUID; the
    /// Ethernet address is used instead.
    #[must_use]
    pub fn find(&self, id: Option<MachineId>, mac: MacAddr) -> Option<Machine> {
        let id = match id {
            // A reported UUID decides alone: a card may have moved here from a machine that the table
            // still lists with it.
            Some(id) => id,
            None => *self.by_mac.get(&mac)?,
        };
        self.by_id.get(&id).map(|target| Machine {
            id,
            target: *target,
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_uuid_decides_before_the_address() {
        let id = |n| MachineId::new(Uuid::from_u128(n));
        let (a, b) = (id(1), id(2));
        let (mac_a, mac_b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let mut machines = Machines::default();
        machines.insert(a, [mac_a], Target::Hammer);
        machines.insert(b, [mac_b], Target::Disk);
        assert_eq!(machines.find(Some(a), mac_b).unwrap().id, a);
        assert_eq!(machines.find(None, mac_b).unwrap().target, Target::Disk);
        assert_eq!(machines.find(Some(id(3)), mac_a), None);
        assert_eq!(machines.find(None, MacAddr([9; 6])), None);
        assert_eq!(machines.len(), 2);
        assert_eq!(machines.owner(mac_a), Some(a));
    }
}
