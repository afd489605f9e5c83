//! Indexes of machines and of orders to their BMCs.

use proto_types::{NetworkId, PartitionId, ProjectId, SizeId, SwitchId};

use crate::machine::entity::{AllocationType, Availability, BmcOrder, Machine, OrderState, Phase};
use crate::tables::index::{Index, Indexed, insert, nodes, remove, subtract, tenure};

/// Partition and size in which a machine is on offer, by the fields of the machine alone. `None`
/// means that it is not on offer.
fn class_of(machine: &Machine) -> Option<(PartitionId, SizeId)> {
    let is_offered = machine.phase == Phase::Waiting
        && !machine.dirty
        && machine.allocation.is_none()
        && machine.condition.state == Availability::Available
        && machine.is_shared();
    let place = (machine.partition.clone()?, machine.size.clone()?);
    is_offered.then_some(place)
}

/// Switch ports that a machine reports as neighbours of its cards.
fn claimed(machine: &Machine) -> impl Iterator<Item = (SwitchId, String)> + '_ {
    let heard = machine.hardware.nics.iter().flat_map(|nic| &nic.neighbours);
    heard.filter_map(|neighbour| {
        Some((
            neighbour.system_name.parse().ok()?,
            neighbour.port_id.clone(),
        ))
    })
}

/// Networks of a machine that is allocated as a firewall, and its project. Empty for all others.
fn firewall_networks(machine: &Machine) -> impl Iterator<Item = (&NetworkId, ProjectId)> {
    let allocation = machine.allocation.as_ref();
    let firewall = allocation.filter(|found| found.kind == AllocationType::Firewall);
    firewall.into_iter().flat_map(|found| {
        let networks = found.networks.iter();
        networks.map(|joined| (&joined.network, found.project))
    })
}

/// `true` unless only a BMC agent has reported the machine.
fn is_arrival(machine: &Machine) -> bool {
    machine.phase != Phase::New || machine.bmc.is_none()
}

impl Indexed for Machine {
    fn add_to(&self, index: &mut Index) {
        for port in claimed(self) {
            insert(&mut index.claimants, port, self.id);
        }
        for nic in &self.hardware.nics {
            insert(&mut index.card_machines, nic.mac, self.id);
        }
        for link in &self.links {
            index
                .port_machine
                .insert((link.switch.clone(), link.port.clone()), self.id);
        }
        if let Some(partition) = &self.partition {
            insert(&mut index.partition_machines, partition.clone(), self.id);
            let arrival = (self.meta.created_at, self.id);
            if is_arrival(self) {
                insert(&mut index.arrivals, partition.clone(), arrival);
            } else {
                *index.bmc_only.entry(partition.clone()).or_default() += 1;
            }
            if self.is_stranger() {
                insert(&mut index.strangers, partition.clone(), arrival);
            }
            if let Some(bmc) = &self.bmc {
                let at = (partition.clone(), bmc.address.clone());
                *index.bmc_machines.entry(at).or_default() += 1;
            }
            if let Some(mac) = self.first_mac {
                insert(&mut index.first_macs, (partition.clone(), mac), self.id);
            }
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
        tenure::add_machine(self, index);
        nodes::add_machine(self, index);
        for (network, project) in firewall_networks(self) {
            let firewall = (project, self.id);
            insert(&mut index.network_firewalls, network.clone(), firewall);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        for port in claimed(self) {
            remove(&mut index.claimants, &port, &self.id);
        }
        for nic in &self.hardware.nics {
            remove(&mut index.card_machines, &nic.mac, &self.id);
        }
        for link in &self.links {
            let port = (link.switch.clone(), link.port.clone());
            // Another machine may have taken the port meanwhile; its entry stays.
            if index.port_machine.get(&port) == Some(&self.id) {
                index.port_machine.remove(&port);
            }
        }
        if let Some(partition) = &self.partition {
            remove(&mut index.partition_machines, partition, &self.id);
            let arrival = (self.meta.created_at, self.id);
            remove(&mut index.arrivals, partition, &arrival);
            if !is_arrival(self) {
                subtract(&mut index.bmc_only, partition.clone());
            }
            remove(&mut index.strangers, partition, &arrival);
            if let Some(bmc) = &self.bmc {
                subtract(
                    &mut index.bmc_machines,
                    (partition.clone(), bmc.address.clone()),
                );
            }
            if let Some(mac) = self.first_mac {
                remove(&mut index.first_macs, &(partition.clone(), mac), &self.id);
            }
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
        tenure::remove_machine(self, index);
        nodes::remove_machine(self, index);
        for (network, project) in firewall_networks(self) {
            remove(&mut index.network_firewalls, network, &(project, self.id));
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
