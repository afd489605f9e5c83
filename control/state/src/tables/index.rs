//! Indexes: derived from the tables, never stored, rebuilt by loading.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{
    BootTicketId, MachineId, NetworkId, OrderId, PartitionId, ProjectId, SizeId, SwitchId, TenantId,
};

use crate::entities::{
    Availability, BmcOrder, BootTicket, Certificate, Ip, IpKey, Machine, Network, OrderState,
    Phase, Project,
};

/// Ways to find objects by something else than their key.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Machine at a switch port.
    pub(crate) port_machine: BTreeMap<(SwitchId, String), MachineId>,
    /// Machine that has an AS number.
    pub(crate) asn_machine: BTreeMap<u32, MachineId>,
    /// Machines that a project has.
    pub(crate) project_machines: BTreeMap<ProjectId, BTreeSet<MachineId>>,
    /// Projects that somebody is a direct member of.
    pub(crate) member_projects: BTreeMap<TenantId, BTreeSet<ProjectId>>,
    /// How many networks a project has.
    pub(crate) project_networks: BTreeMap<ProjectId, u32>,
    /// Addresses that a project has.
    pub(crate) project_ips: BTreeMap<ProjectId, BTreeSet<IpKey>>,
    /// Machines in a partition.
    pub(crate) partition_machines: BTreeMap<PartitionId, BTreeSet<MachineId>>,
    /// Clean machines that wait, by partition and size, then by rack. They may still be dead.
    pub(crate) offered: BTreeMap<(PartitionId, SizeId), BTreeMap<String, BTreeSet<MachineId>>>,
    /// How many networks have a VRF.
    pub(crate) vrf_networks: BTreeMap<u32, usize>,
    /// Networks that came out of a network.
    pub(crate) children: BTreeMap<NetworkId, BTreeSet<NetworkId>>,
    /// Addresses out of a network.
    pub(crate) network_ips: BTreeMap<NetworkId, BTreeSet<IpKey>>,
    /// Addresses that a machine has.
    pub(crate) machine_ips: BTreeMap<MachineId, BTreeSet<IpKey>>,
    /// Orders of a machine by sequence.
    pub(crate) machine_orders: BTreeMap<MachineId, BTreeMap<u64, OrderId>>,
    /// Open orders of a partition.
    pub(crate) open_orders: BTreeMap<PartitionId, BTreeSet<OrderId>>,
    /// Boot tickets of a machine.
    pub(crate) machine_boot_tickets: BTreeMap<MachineId, BTreeSet<BootTicketId>>,
    /// Certificates for a machine.
    pub(crate) machine_certificates: BTreeMap<MachineId, BTreeSet<String>>,
}

pub(crate) trait Indexed {
    fn add_to(&self, index: &mut Index);
    fn remove_from(&self, index: &mut Index);
}

fn insert<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: K, value: V) {
    map.entry(key).or_default().insert(value);
}

fn remove<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

/// Where a machine is on offer, as far as it alone can tell.
fn class_of(machine: &Machine) -> Option<(PartitionId, SizeId)> {
    let is_offered = machine.phase == Phase::Waiting
        && !machine.dirty
        && machine.allocation.is_none()
        && machine.condition.state == Availability::Available;
    let place = (machine.partition.clone()?, machine.size.clone()?);
    is_offered.then_some(place)
}

impl Indexed for Machine {
    fn add_to(&self, index: &mut Index) {
        for link in &self.links {
            index
                .port_machine
                .insert((link.switch.clone(), link.port.clone()), self.id);
        }
        if let Some(partition) = &self.partition {
            insert(&mut index.partition_machines, partition.clone(), self.id);
        }
        if let Some(class) = class_of(self) {
            insert(
                index.offered.entry(class).or_default(),
                self.rack.clone(),
                self.id,
            );
        }
        if let Some(allocation) = &self.allocation {
            index.asn_machine.insert(allocation.asn.0, self.id);
            insert(&mut index.project_machines, allocation.project, self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        for link in &self.links {
            let port = (link.switch.clone(), link.port.clone());
            if index.port_machine.get(&port) == Some(&self.id) {
                index.port_machine.remove(&port);
            }
        }
        if let Some(partition) = &self.partition {
            remove(&mut index.partition_machines, partition, &self.id);
        }
        if let Some(class) = class_of(self)
            && let Some(racks) = index.offered.get_mut(&class)
        {
            remove(racks, &self.rack, &self.id);
            if racks.is_empty() {
                index.offered.remove(&class);
            }
        }
        if let Some(allocation) = &self.allocation {
            index.asn_machine.remove(&allocation.asn.0);
            remove(&mut index.project_machines, &allocation.project, &self.id);
        }
    }
}

fn count(map: &mut BTreeMap<ProjectId, u32>, project: ProjectId) {
    *map.entry(project).or_default() += 1;
}

fn discount(map: &mut BTreeMap<ProjectId, u32>, project: ProjectId) {
    if let Some(number) = map.get_mut(&project) {
        *number = number.saturating_sub(1);
        if *number == 0 {
            map.remove(&project);
        }
    }
}

impl Indexed for Project {
    fn add_to(&self, index: &mut Index) {
        for member in self.members.keys() {
            insert(&mut index.member_projects, member.clone(), self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        for member in self.members.keys() {
            remove(&mut index.member_projects, member, &self.id);
        }
    }
}

impl Indexed for Network {
    fn add_to(&self, index: &mut Index) {
        if let Some(project) = self.project {
            count(&mut index.project_networks, project);
        }
        if let Some(vrf) = self.vrf {
            *index.vrf_networks.entry(vrf).or_default() += 1;
        }
        if let Some(parent) = &self.parent {
            insert(&mut index.children, parent.clone(), self.id.clone());
        }
    }
    fn remove_from(&self, index: &mut Index) {
        if let Some(project) = self.project {
            discount(&mut index.project_networks, project);
        }
        if let Some(vrf) = self.vrf {
            let count = index.vrf_networks.entry(vrf).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                index.vrf_networks.remove(&vrf);
            }
        }
        if let Some(parent) = &self.parent {
            remove(&mut index.children, parent, &self.id);
        }
    }
}

impl Indexed for Ip {
    fn add_to(&self, index: &mut Index) {
        let key = IpKey {
            namespace: self.namespace,
            ip: self.ip,
        };
        insert(&mut index.network_ips, self.network.clone(), key);
        insert(&mut index.project_ips, self.project, key);
        if let Some(machine) = self.machine {
            insert(&mut index.machine_ips, machine, key);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        let key = IpKey {
            namespace: self.namespace,
            ip: self.ip,
        };
        remove(&mut index.network_ips, &self.network, &key);
        remove(&mut index.project_ips, &self.project, &key);
        if let Some(machine) = self.machine {
            remove(&mut index.machine_ips, &machine, &key);
        }
    }
}

impl Indexed for BmcOrder {
    fn add_to(&self, index: &mut Index) {
        index
            .machine_orders
            .entry(self.machine)
            .or_default()
            .insert(self.sequence, self.id);
        if self.state == OrderState::Open {
            insert(&mut index.open_orders, self.partition.clone(), self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        if let Some(orders) = index.machine_orders.get_mut(&self.machine) {
            orders.remove(&self.sequence);
            if orders.is_empty() {
                index.machine_orders.remove(&self.machine);
            }
        }
        remove(&mut index.open_orders, &self.partition, &self.id);
    }
}

impl Indexed for BootTicket {
    fn add_to(&self, index: &mut Index) {
        insert(&mut index.machine_boot_tickets, self.machine, self.id);
    }
    fn remove_from(&self, index: &mut Index) {
        remove(&mut index.machine_boot_tickets, &self.machine, &self.id);
    }
}

impl Indexed for Certificate {
    fn add_to(&self, index: &mut Index) {
        if let Some(machine) = self.machine {
            insert(
                &mut index.machine_certificates,
                machine,
                self.serial.clone(),
            );
        }
    }
    fn remove_from(&self, index: &mut Index) {
        if let Some(machine) = self.machine {
            remove(&mut index.machine_certificates, &machine, &self.serial);
        }
    }
}
