//! Indexes: derived from the tables, never stored, rebuilt by loading.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{
    BootTicketId, Digest, MacAddr, MachineId, NetworkId, OrderId, PartitionId, ProjectId, SizeId,
    SwitchId, TenantId, Timestamp, TokenId,
};

use crate::identity::entity::{BootTicket, Certificate, Token};
use crate::machine::entity::{Availability, BmcOrder, Machine, OrderState, Phase};
use crate::network::entity::{Ip, IpKey, Network};
use crate::switch::entity::{Switch, addresses};
use crate::tenancy::entity::Project;

/// Ways to find objects by something else than their key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Index {
    /// Machine at a switch port.
    pub(crate) port_machine: BTreeMap<(SwitchId, String), MachineId>,
    /// Machines that say that they hear a switch port, known or not.
    pub(crate) claimants: BTreeMap<(SwitchId, String), BTreeSet<MachineId>>,
    /// Machines that say that they have a card of an address.
    pub(crate) card_machines: BTreeMap<MacAddr, BTreeSet<MachineId>>,
    /// Ports at which a switch that tells whom it hears hears an address.
    pub(crate) heard: BTreeMap<MacAddr, BTreeSet<(SwitchId, String)>>,
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
    /// How many machines the BMC of an address stands for.
    pub(crate) bmc_machines: BTreeMap<(PartitionId, String), usize>,
    /// How many ports are in a segment, as their switches report.
    pub(crate) observed_vnis: BTreeMap<u32, usize>,
    /// Machines of a partition that were seen and never registered, and of which no BMC is known,
    /// by the time when they became known.
    pub(crate) strangers: BTreeMap<PartitionId, BTreeSet<(Timestamp, MachineId)>>,
    /// Machines of a partition by the time when they became known, those aside that only a BMC
    /// agent knows.
    pub(crate) arrivals: BTreeMap<PartitionId, BTreeSet<(Timestamp, MachineId)>>,
    /// Machines of a partition by the MAC address that they were first seen with.
    pub(crate) first_macs: BTreeMap<(PartitionId, MacAddr), BTreeSet<MachineId>>,
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
    /// Tokens that name a machine, as the subject of a role or of a permission. Ids of projects
    /// have the same form and are in here as well.
    pub(crate) machine_tokens: BTreeMap<MachineId, BTreeSet<TokenId>>,
    /// Tokens by whose budget they count for.
    pub(crate) holder_tokens: BTreeMap<String, BTreeSet<TokenId>>,
    /// Tenants that a user made and owns.
    pub(crate) maker_tenants: BTreeMap<String, BTreeSet<TenantId>>,
    /// Projects of a tenant.
    pub(crate) tenant_projects: BTreeMap<TenantId, BTreeSet<ProjectId>>,
    /// Open invites by who invites.
    pub(crate) inviter_invites: BTreeMap<String, BTreeSet<Digest>>,
    /// Audit records by whose share of the trail they count for.
    pub(crate) audit_shares: BTreeMap<String, BTreeSet<u64>>,
    /// Gaps of the audit trail.
    pub(crate) audit_gaps: BTreeSet<u64>,
    /// The audit record that tells which gaps there are.
    pub(crate) audit_retention: Option<u64>,
}

pub(crate) trait Indexed {
    fn add_to(&self, index: &mut Index);
    fn remove_from(&self, index: &mut Index);
}

pub(super) fn insert<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: K, value: V) {
    map.entry(key).or_default().insert(value);
}

pub(super) fn remove<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

/// One less of what is counted.
fn subtract<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, key: K) {
    let count = counts.entry(key.clone()).or_default();
    *count = count.saturating_sub(1);
    if *count == 0 {
        counts.remove(&key);
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

/// Ports that a machine says it hears.
fn claimed(machine: &Machine) -> impl Iterator<Item = (SwitchId, String)> + '_ {
    let heard = machine.hardware.nics.iter().flat_map(|nic| &nic.neighbours);
    heard.filter_map(|it| Some((it.system_name.parse().ok()?, it.port_id.clone())))
}

/// `true` unless only a BMC agent knows the machine.
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
            if index.port_machine.get(&port) == Some(&self.id) {
                index.port_machine.remove(&port);
            }
        }
        if let Some(partition) = &self.partition {
            remove(&mut index.partition_machines, partition, &self.id);
            let arrival = (self.meta.created_at, self.id);
            remove(&mut index.arrivals, partition, &arrival);
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
    }
}

/// Addresses that a switch hears, and where.
fn heard(switch: &Switch) -> impl Iterator<Item = (MacAddr, (SwitchId, String))> + '_ {
    let ports = switch.ports.iter().filter(|_| switch.hears);
    ports.flat_map(|(name, port)| {
        let heard = port.observed.iter().flat_map(|seen| &seen.neighbours);
        heard
            .flat_map(addresses)
            .map(|mac| (mac, (switch.id.clone(), name.clone())))
    })
}

impl Indexed for Switch {
    fn add_to(&self, index: &mut Index) {
        for (mac, at) in heard(self) {
            insert(&mut index.heard, mac, at);
        }
        for vni in observed_vnis(self) {
            *index.observed_vnis.entry(vni).or_default() += 1;
        }
    }
    fn remove_from(&self, index: &mut Index) {
        for (mac, at) in heard(self) {
            remove(&mut index.heard, &mac, &at);
        }
        for vni in observed_vnis(self) {
            subtract(&mut index.observed_vnis, vni);
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
        insert(&mut index.tenant_projects, self.tenant.clone(), self.id);
        for member in self.members.keys() {
            insert(&mut index.member_projects, member.clone(), self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        remove(&mut index.tenant_projects, &self.tenant, &self.id);
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
            subtract(&mut index.vrf_networks, vrf);
        }
        if let Some(parent) = &self.parent {
            remove(&mut index.children, parent, &self.id);
        }
    }
}

/// Segments that the ports of a switch are in, as it reports; isolated ports are in none.
fn observed_vnis(switch: &Switch) -> impl Iterator<Item = u32> {
    let observed = switch
        .ports
        .values()
        .filter_map(|port| port.observed.as_ref());
    observed.map(|seen| seen.vni.get()).filter(|vni| *vni != 0)
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

/// Whom a token names that may be a machine.
fn machines_of(token: &Token) -> impl Iterator<Item = MachineId> {
    let roles = token.machine_roles.keys();
    let permissions = token
        .permissions
        .iter()
        .map(|permission| &permission.subject);
    roles
        .chain(permissions)
        .filter_map(|subject| subject.parse().ok())
}

impl Indexed for Token {
    fn add_to(&self, index: &mut Index) {
        for machine in machines_of(self) {
            insert(&mut index.machine_tokens, machine, self.id);
        }
        if let Some(holder) = self.holder() {
            insert(&mut index.holder_tokens, holder, self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        for machine in machines_of(self) {
            remove(&mut index.machine_tokens, &machine, &self.id);
        }
        if let Some(holder) = self.holder() {
            remove(&mut index.holder_tokens, &holder, &self.id);
        }
    }
}
