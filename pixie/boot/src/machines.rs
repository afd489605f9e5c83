//! The table of machines that control sends: who boots what.

use std::collections::BTreeMap;

use proto_types::{MacAddr, MachineId};

/// What a machine boots.
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

/// All machines of the partition, found by UUID or by any of their Ethernet addresses.
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
        self.by_mac.extend(macs.into_iter().map(|mac| (mac, id)));
    }

    /// Sets whether the installer is not the one of pixie's configuration. Then a unified kernel
    /// image of that configuration would be the wrong installer, and every machine is sent to its
    /// script.
    pub fn set_needs_script(&mut self, needs_script: bool) {
        self.needs_script = needs_script;
    }

    /// `true` if only a script tells the installer.
    #[must_use]
    pub fn needs_script(&self) -> bool {
        self.needs_script
    }

    /// How many machines are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The machine that an Ethernet address belongs to.
    #[must_use]
    pub fn owner(&self, mac: MacAddr) -> Option<MachineId> {
        self.by_mac.get(&mac).copied()
    }

    /// Finds a machine. The UUID decides where there is one; the Ethernet address is for firmware
    /// that does not tell the UUID.
    #[must_use]
    pub fn find(&self, id: Option<MachineId>, mac: MacAddr) -> Option<Machine> {
        let id = match id {
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
