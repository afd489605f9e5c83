//! The boot targets of the machines of a partition.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto_types::{MacAddr, MachineId, PartitionId, SwitchId};

use crate::machine::entity::Machine;
use crate::machine::read::{BootTarget, boot_target};
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// The boot target of a machine, for pixie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineBoot {
    /// Id of the machine.
    pub machine: MachineId,
    /// MAC addresses of its cards: requests from them are the machine's.
    pub macs: BTreeSet<MacAddr>,
    /// Boot target of the machine.
    pub target: BootTarget,
}

/// A switch that relays the DHCP requests of machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootRelay {
    /// The switch.
    pub switch: SwitchId,
    /// Address of its management interface.
    pub address: IpAddr,
}

/// The switches of a partition that may relay DHCP requests. Of several with one address only the
/// first that registered does: the boot server would take none of them. Control refuses the others;
/// an older one did not.
pub fn boot_relays(tables: &Tables, partition: &PartitionId) -> Vec<BootRelay> {
    let switches = tables.all::<Switch>();
    let mut first: BTreeMap<IpAddr, &Switch> = BTreeMap::new();
    for switch in switches.filter(|switch| switch.partition == *partition) {
        let Some(address) = switch.management_ip else {
            continue;
        };
        let age = |switch: &Switch| (switch.meta.created_at, switch.id.clone());
        let known = first.entry(address).or_insert(switch);
        if age(switch) < age(known) {
            *known = switch;
        }
    }
    let relay = |(address, switch): (IpAddr, &Switch)| BootRelay {
        switch: switch.id.clone(),
        address,
    };
    let mut relays: Vec<BootRelay> = first.into_iter().map(relay).collect();
    relays.sort_by(|one, other| one.switch.cmp(&other.switch));
    relays
}

/// The boot targets of all machines of a partition.
pub fn boot_desired(tables: &Tables, partition: &PartitionId) -> Vec<MachineBoot> {
    let machines = tables.index().partition_machines.get(partition);
    machines
        .into_iter()
        .flatten()
        .filter_map(|id| tables.get::<Machine>(id))
        .map(|machine| MachineBoot {
            machine: machine.id,
            macs: machine.macs(),
            target: boot_target(tables, machine.id),
        })
        .collect()
}
